"""How a run stands at one moment, in figures and names; and what an event changed, as the difference of two such."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from harness.state import OBSERVED, OpenAttempt, ScopeState, reserved_in
from ledger.audit.walking.replay import Moment
from ledger.words.codes import amount, noun, plain, rank
from ledger.words.event_lines import boundary_words
from ledger.words.format import count


@dataclass(frozen=True, slots=True)
class Budget:
    """One limited resource of a run or of a nested scope."""

    resource: str
    used: int
    """With what is reserved."""
    reserved: int
    limit: int | None
    """None for what is counted and not limited."""
    is_observed: bool
    """Whether what passes the limit is let through (SPEC D13)."""


@dataclass(frozen=True, slots=True)
class ScopeStanding:
    """A nested scope that is open (SPEC D5)."""

    scope_id: str
    name: str
    budgets: tuple[Budget, ...]
    exhausted: str | None
    """The resource that ran out."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt whose end, or whose usage, is still to come."""

    attempt_id: str
    name: str


@dataclass(frozen=True, slots=True)
class Standing:
    """Everything that can be said of a run at one moment."""

    seq: int
    status: str
    """`RUNNING`, or how the run ended."""
    reason: str | None
    elapsed_us: int
    timeout_us: int
    left_us: int
    """Of the deadline; 0 once it has passed."""
    budgets: tuple[Budget, ...]
    currency: str | None
    """What `cost_micros` are millionths of."""
    usage_unknown_count: int
    cost_unknown_count: int
    refused: str | None
    """The resource that refused work, or ended the run."""
    open_attempts: tuple[Attempt, ...]
    abandoned_attempts: tuple[Attempt, ...]
    """Which may still end late."""
    unsettled_attempts: tuple[Attempt, ...]
    scopes: tuple[ScopeStanding, ...]
    cancel_requested: str | None
    cancel_signalled: str | None
    flow: str | None
    node: str | None
    transition_count: int
    graph_final_node: str | None
    is_degraded: bool
    step_count: int
    tool_call_count: int
    is_answered: bool
    incidents: Mapping[str, int]
    feedback: bool | None
    """Whether a person found the answer useful; None where nobody said."""
    evaluations: Mapping[str, str]
    """Verdict by evaluator."""
    case_id: str | None
    erasure_count: int


class Change(NamedTuple):
    """One thing that an event changed."""

    what: str
    before: str | None
    after: str | None
    of: str = ""
    """What both stand against, such as ` of 6`."""

    @property
    def words(self) -> str:
        """`model calls: 1 → 2 of 6`, `open: query_logs`, `no longer open: query_logs`."""
        if self.before is None:
            return f"{self.what}: {self.after}{self.of}"
        if self.after is None:
            return f"no longer {self.what}: {self.before}"
        return f"{self.what}: {self.before} → {self.after}{self.of}"


def standing(moment: Moment) -> Standing:
    """How the run stands at that moment."""
    run, state = moment.run, moment.run.state
    elapsed_us = moment.elapsed_us if state.ended_elapsed_us is None else state.ended_elapsed_us
    finished = run.orchestration.finished
    return Standing(
        seq=moment.seq,
        status=state.outcome,
        reason=state.reason,
        elapsed_us=elapsed_us,
        timeout_us=state.timeout_us,
        left_us=max(0, state.timeout_us - elapsed_us),
        budgets=tuple(_budgets(state.limits, state.usage, reserved_in(state))),
        currency=run.started.currency,
        usage_unknown_count=state.usage_unknown_count,
        cost_unknown_count=state.cost_unknown_count,
        refused=None if state.refusal is None else state.refusal.resource,
        open_attempts=_attempts(state.open_attempts.values()),
        abandoned_attempts=_attempts(state.abandoned_attempts.values()),
        unsettled_attempts=_attempts(state.unsettled_attempts.values()),
        scopes=tuple(_scope(scope_id, scope, reserved_in(state, scope_id)) for scope_id, scope in state.scopes.items()),
        cancel_requested=state.cancel_requested,
        cancel_signalled=state.cancel_signalled,
        flow=state.flow,
        node=moment.node,
        transition_count=run.orchestration.transition_count,
        graph_final_node=state.graph_final_node,
        is_degraded=finished is not None and finished.degraded,
        step_count=run.step_count,
        tool_call_count=run.tool_call_count,
        is_answered=state.answered,
        incidents=run.incidents,
        feedback=None if run.feedback is None else run.feedback.useful,
        evaluations={name: said.verdict for name, said in run.evaluations.items()},
        case_id=None if run.case is None else run.case.case_id,
        erasure_count=run.erasure_count,
    )


def changes(before: Moment | None, after: Moment) -> tuple[Change, ...]:
    """What `after.event` made of the run that stood as at `before`; but for the time, which always goes on."""
    old = {} if before is None else _facts(standing(before))
    new = _facts(standing(after))
    found = []
    for key in dict.fromkeys((*new, *old)):
        was, now = old.get(key), new.get(key)
        if was != now and not (now is None and key[0] in _SILENT):
            what, of = (now or was or _NO_FACT)[1:]
            found.append(Change(what, was.value if was else None, now.value if now else None, of))
    return tuple(found)


class _Fact(NamedTuple):
    value: str
    what: str
    of: str = ""


_NO_FACT = _Fact("", "")
_SILENT = ("budget", "exhausted")
"""Of a scope that was closed nothing more is said than that."""


def _facts(run: Standing) -> dict[tuple[str, str], _Fact]:
    """The standing as single facts, each under a key of its own; what is not so yet is left out."""
    return dict(_each_fact(run))


def _each_fact(run: Standing) -> Iterator[tuple[tuple[str, str], _Fact]]:
    reason = "" if run.reason in (None, run.status) else f" ({plain(str(run.reason))})"
    yield ("run", ""), _Fact(f"{plain(run.status)}{reason}", "run")
    yield from _budget_facts("", run.budgets)
    for what, number in (
        ("attempts of unknown usage", run.usage_unknown_count),
        ("attempts of unknown cost", run.cost_unknown_count),
        ("model steps", run.step_count),
        ("tool invocations", run.tool_call_count),
        *((plain(kind), number) for kind, number in run.incidents.items()),
        ("erasures", run.erasure_count),
    ):
        if number:
            yield ("count", what), _Fact(count(number), what)
    for what, attempts in (
        ("open", run.open_attempts),
        ("abandoned", run.abandoned_attempts),
        ("unsettled", run.unsettled_attempts),
    ):
        for attempt in attempts:
            yield (what, attempt.attempt_id), _Fact(attempt.name, what)
    for scope in run.scopes:
        yield ("scope", scope.scope_id), _Fact(scope.name, "open scope")
        if scope.exhausted is not None:
            yield ("exhausted", scope.scope_id), _Fact(scope.name, "exhausted")
        yield from _budget_facts(scope.name, scope.budgets)
    yes = {True: "yes", False: None}
    for what, value in (
        ("refused by", None if run.refused is None else noun(run.refused)),
        ("cancellation requested", run.cancel_requested and plain(run.cancel_requested)),
        ("cancellation signalled", run.cancel_signalled and plain(run.cancel_signalled)),
        ("flow", run.flow),
        ("graph", run.node),
        ("graph finished in", run.graph_final_node),
        ("degraded", yes[run.is_degraded]),
        ("answered", yes[run.is_answered]),
        ("feedback", None if run.feedback is None else "useful" if run.feedback else "not useful"),
        *((f"evaluation by {name}", plain(verdict)) for name, verdict in run.evaluations.items()),
        ("case", run.case_id),
    ):
        if value is not None:
            yield (what, ""), _Fact(value, what)


def _budget_facts(scope: str, budgets: Iterable[Budget]) -> Iterator[tuple[tuple[str, str], _Fact]]:
    inside = f"scope {scope}, " if scope else ""
    for each in budgets:
        name = f"{inside}{noun(each.resource)}"
        of = "" if each.limit is None else f" of {amount(each.resource, each.limit)}"
        reserved = f" ({amount(each.resource, each.reserved)} reserved)" if each.reserved else ""
        yield ("budget", name), _Fact(f"{amount(each.resource, each.used)}{reserved}", name, of)


def _budgets(limits: Mapping[str, int], usage: Mapping[str, int], reserved: Mapping[str, int]) -> Iterator[Budget]:
    """Calls, each tool, tokens, cost, bytes, and then whatever has no name here."""
    named = {name.removeprefix(OBSERVED) for name in limits}
    for resource in sorted(named | usage.keys(), key=rank):
        if resource in ("tool_default", "repeated_calls"):
            continue  # a limit of each tool, and of each call: nothing is counted under its name
        limit, is_observed = limit_of(limits, resource)
        yield Budget(resource, usage.get(resource, 0), reserved.get(resource, 0), limit, is_observed)


def limit_of(limits: Mapping[str, int], resource: str) -> tuple[int | None, bool]:
    """The limit of a resource as recorded, and whether it is only observed; a tool without one has the default."""
    for name in (resource, *(["tool_default"] if resource.startswith("tool:") else [])):
        if name in limits:
            return limits[name], False
        if OBSERVED + name in limits:
            return limits[OBSERVED + name], True
    return None, False


def _scope(scope_id: str, scope: ScopeState, reserved: Mapping[str, int]) -> ScopeStanding:
    return ScopeStanding(
        scope_id=scope_id,
        name=boundary_words(scope.boundary),
        budgets=tuple(each for each in _budgets(scope.limits, scope.usage, reserved) if each.limit is not None),
        exhausted=None if scope.exhausted is None else scope.exhausted.resource,
    )


def _attempts(attempts: Iterable[OpenAttempt]) -> tuple[Attempt, ...]:
    return tuple(Attempt(each.attempt_id, boundary_words(each.boundary)) for each in attempts)
