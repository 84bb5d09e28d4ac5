"""The arithmetic of usage: what is charged, reserved, settled and given back (SPEC H4, D5)."""

from __future__ import annotations

from collections.abc import Mapping

from harness.state.records import NOTHING, OpenAttempt, RunState

TOKENS = ("input_tokens", "output_tokens")
ESTIMATES = frozenset({*TOKENS, "total_tokens", "cost_micros"})
"""What may be reserved as an estimate, and is settled by what was really used."""


def charge(usage: Mapping[str, int], amounts: Mapping[str, int]) -> Mapping[str, int]:
    """Usage with `amounts` added; negative ones give back."""
    charged = {**usage}
    for name, amount in amounts.items():
        charged[name] = charged.get(name, 0) + amount
    return charged


def charge_run(state: RunState, scope_ids: tuple[str, ...], amounts: Mapping[str, int]) -> None:
    """Charge the run, and those of the scopes that are still open, with `amounts`."""
    if not amounts:
        return
    state.usage = charge(state.usage, amounts)
    if scope_ids:
        scopes = state.scopes
        inside = {key: scopes[key] for key in scope_ids if key in scopes}
        charged = {key: scope._replace(usage=charge(scope.usage, amounts)) for key, scope in inside.items()}
        state.scopes = {**scopes, **charged}


def count_unknown(state: RunState, attempt: OpenAttempt, *, usage: int = 0, cost: int = 0) -> None:
    """Count so many attempts more of unknown usage, in the run and in those of its scopes that are still open."""
    cost = cost if state.is_priced else 0
    if not usage and not cost:
        return
    if attempt.scope_ids:
        scopes = {**state.scopes}
        for key in attempt.scope_ids:
            if (scope := scopes.get(key)) is not None:
                unknown = scope.usage_unknown_count + usage, scope.cost_unknown_count + cost
                scopes[key] = scope._replace(usage_unknown_count=unknown[0], cost_unknown_count=unknown[1])
        state.scopes = scopes
    state.usage_unknown_count += usage
    state.cost_unknown_count += cost


def reserved_in(state: RunState, scope_id: str | None = None) -> Mapping[str, int]:
    """What is reserved as an estimate and not settled yet, in the run or in one of its scopes."""
    total: Mapping[str, int] = NOTHING
    for reservation in state.reserved.values():
        if scope_id is None or scope_id in reservation.scope_ids:
            total = charge(total, reservation.amounts)
    return total


def estimates_in(amounts: Mapping[str, int]) -> Mapping[str, int]:
    """The part of a reservation that is an estimate."""
    if ESTIMATES.isdisjoint(amounts):
        return NOTHING
    return {name: amount for name, amount in amounts.items() if name in ESTIMATES}


def settlement(reserved: Mapping[str, int], actual: Mapping[str, int]) -> Mapping[str, int]:
    """What to charge once actual usage is known, beyond what was reserved; what stays unknown keeps its reservation."""
    if not reserved:
        return actual
    known = {name: actual.get(name, reserved.get(name, 0)) for name in TOKENS if name in actual or name in reserved}
    settled = {**known, "total_tokens": sum(known.values())} if known else {}
    if "cost_micros" in actual:
        settled["cost_micros"] = actual["cost_micros"]
    return {name: amount - reserved.get(name, 0) for name, amount in settled.items()}


def given_back(reserved: Mapping[str, int]) -> Mapping[str, int]:
    """What to charge when nothing of a reservation was used."""
    return {name: -amount for name, amount in reserved.items()} if reserved else NOTHING
