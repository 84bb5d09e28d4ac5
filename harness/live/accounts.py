"""What a boundary is charged to: its run and the nested scopes around it, which all have to let it through (SPEC D5).

Everything here is decided with the run's lock held. Where the run and a scope would both refuse, the run does; of
scopes the outermost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from harness import events as e
from harness.budget.repeats import Call, Repeats
from harness.budget.usage import DEADLINE, Account, Excess, find_excess, find_observed, find_overrun
from harness.cancellation import CancelReason
from harness.errors import HarnessError
from harness.journal import Recorded
from harness.live.run import LiveRun
from harness.live.scope import LiveScope
from harness.state import RunState, ScopeState, reserved_in

REPEATED_CALLS = "repeated_calls"


@dataclass(frozen=True, slots=True)
class Accounts:
    """A run and nested scopes in it, the outermost first."""

    live: LiveRun
    scopes: tuple[LiveScope, ...] = ()

    @property
    def scope_id(self) -> str | None:
        """The innermost scope's, for events; None outside of any."""
        return self.scopes[-1].scope_id if self.scopes else None

    def innermost(self) -> RunState | ScopeState:
        """The limits and usage of the innermost scope, else of the run; needs no lock."""
        state = self.live.state
        return self.scopes[-1].state(state) if self.scopes else state

    def limiting(self, resource: str) -> RunState | ScopeState:
        """The innermost scope that has a limit for this resource, else the run; needs no lock."""
        state = self.live.state
        inside_out = (scope.state(state) for scope in reversed(self.scopes))
        return next((of for of in inside_out if resource in of.limits or resource in of.observed), state)

    def check_open(self) -> None:
        """Raise `RunEnded` if the run has ended, `ScopeExhausted` or `ScopeNotOpen` if a scope has.

        A deadline that has passed ends what it belongs to.
        """
        self.live.check_running()
        self.check_not_ended()
        for scope in self.scopes:
            if (late := scope.find_lateness()) is not None:
                scope.exhaust(late)
                raise self.error(late)

    def check_granted(self) -> None:
        """Raise as `check_open` does, where what was let through must not begin after all, now that it is on record.

        A limit of a scope that others have passed meanwhile takes nothing back.
        """
        self.live.check_running()
        for scope in self.scopes:
            scope.check_entered()
            if (late := scope.find_lateness()) is not None:
                if scope.state(self.live.state).exhausted is None:
                    scope.exhaust(late)
                raise self.error(late)

    def expire(self) -> HarnessError:
        """The earliest deadline has come, as the loop tells time: end what it belongs to; the error for work inside."""
        live = self.live
        with live.lock:
            try:
                self.check_open()
            except HarnessError as error:
                return error
            soonest = min(self.scopes, key=LiveScope.deadline_ns, default=None)
            if soonest is None or soonest.deadline_ns() >= live.deadline.at_ns:
                return live.expire()
            late = soonest.lateness()
            soonest.exhaust(late)
            return self.error(late)

    def check_not_ended(self) -> None:
        """The same, leaving it to `find_refusal` to see that a deadline has passed."""
        if self.live.termination is not None:
            raise self.live.ended()
        for scope in () if self._lateness(None) else self.scopes:
            scope.check_open()

    def find_refusal(self, amounts: Mapping[str, int], calls: Sequence[Call] = ()) -> Excess | None:
        """The deadline that has passed, or the limit that charging `amounts` and making `calls` would pass."""
        for scope, account in self._each():
            excess = (
                self._lateness(scope) or find_excess(account, amounts) or self._repeat(scope, account.limits, calls)
            )
            if excess is not None:
                return _of(scope, excess)
        return None

    def find_excess(self, amounts: Mapping[str, int]) -> Excess | None:
        """The limit that charging `amounts` would pass."""
        found = (_of(scope, excess) for scope, account in self._each() if (excess := find_excess(account, amounts)))
        return next(found, None)

    def would_reject(
        self, amounts: Mapping[str, int], calls: Sequence[Call] = (), /, **fields: str | None
    ) -> list[e.LimitWouldReject]:
        """What to record with a charge that is let through: every observed limit that would have refused it (D13)."""
        found: list[Excess] = []
        for scope, account in self._each():
            if account.observed:
                reserved = reserved_in(self.live.state, scope.scope_id if scope is not None else None)
                found += [_of(scope, excess) for excess in find_observed(account, amounts, reserved)]
                if (repeat := self._repeat(scope, account.observed, calls)) is not None:
                    found.append(_of(scope, repeat))
        return [self.live.event(e.LimitWouldReject, **fields, **excess.as_fields()) for excess in found]

    def charge_bytes(self, size_bytes: int, *, boundary: str, name: str) -> list[e.RunEvent]:
        """The events of bytes that are reserved."""
        amounts = {"run_bytes": size_bytes}
        fields: dict[str, str | None] = {"boundary": boundary, "kind": "capacity", "name": name}
        granted = self.live.event(e.ReservationGranted, usage=amounts, scope_id=self.scope_id, **fields)
        return [granted, *self.would_reject(amounts, **fields)]

    def remember(self, call: Call) -> None:
        """Count a call that was let through, wherever its repetition has a limit."""
        for scope, account in self._each():
            if REPEATED_CALLS in account.limits or REPEATED_CALLS in account.observed:
                self._repeats(scope).add(call.key)

    def refuse(self, excess: Excess, *rejected: e.RunEvent) -> Future[Recorded]:
        """End the run or the scope whose limit it is, and record that with the refusal in one append."""
        if excess.scope_id is not None:
            return self.live.record(*rejected, self._scope(excess.scope_id).exhausted(excess))
        is_late = excess.resource == DEADLINE
        reason = CancelReason.DEADLINE_EXCEEDED if is_late else CancelReason.BUDGET_EXHAUSTED
        recorded = self.live.stop(reason, excess=excess, before=rejected).recorded
        assert recorded is not None, "a run without an outcome has lost nothing"
        return recorded

    def error(self, excess: Excess) -> HarnessError:
        """What refused work raises once its refusal is recorded."""
        if excess.scope_id is None:
            return self.live.ended(excess)
        return self._scope(excess.scope_id).error(excess.resource, excess.used, excess.limit)

    def end_if_overrun(self, overflow: Excess | None = None) -> None:
        """End what `overflow` or recorded usage has passed a limit of: the run, or the outermost such scope (H4a)."""
        state = self.live.state
        for scope, account in self._each():
            scope_id = None if scope is None else scope.scope_id
            if scope_id is not None and (self.live.termination is not None or scope_id not in self.live.state.scopes):
                return
            mine = overflow if overflow is not None and overflow.scope_id == scope_id else None
            reserved = reserved_in(state, scope_id) if state.reserved else {}
            excess = mine or find_overrun(account, reserved)
            if excess is None:
                continue
            if scope is None:
                self.live.stop(CancelReason.BUDGET_EXHAUSTED, excess=excess)
            elif scope.state(state).exhausted is None:
                scope.exhaust(_of(scope, excess))
            return

    def _each(self) -> Iterator[tuple[LiveScope | None, Account]]:
        state = self.live.state
        yield None, state
        for scope in self.scopes:
            yield scope, scope.state(state)

    def _scope(self, scope_id: str) -> LiveScope:
        return next(scope for scope in self.scopes if scope.scope_id == scope_id)

    def _lateness(self, scope: LiveScope | None) -> Excess | None:
        live = self.live
        if scope is not None:
            return scope.find_lateness()
        is_late = live.deadline.has_passed(live.monotonic_clock)
        return Excess(DEADLINE, live.elapsed_us(), live.state.timeout_us) if is_late else None

    def _repeats(self, scope: LiveScope | None) -> Repeats:
        return self.live.repeats if scope is None else scope.repeats

    def _repeat(self, scope: LiveScope | None, limits: Mapping[str, int], calls: Sequence[Call]) -> Excess | None:
        limit = limits.get(REPEATED_CALLS)
        if limit is None:
            return None
        repeats = self._repeats(scope)
        for key, times in Counter(call.key for call in calls).items():
            if (used := repeats.of(key)) + times > limit:
                return Excess(f"repeat:{key[0]}", used, limit, times)
        return None


def _of(scope: LiveScope | None, excess: Excess) -> Excess:
    return excess if scope is None else replace(excess, scope_id=scope.scope_id)
