"""What the handles of one nested scope share; its limits and usage are in the state of its run (SPEC D5)."""

from __future__ import annotations

from harness import events as e
from harness.budget.repeats import Repeats
from harness.budget.usage import DEADLINE, Excess
from harness.deadline import Deadline
from harness.errors import ScopeExhausted, ScopeNotOpen
from harness.live.run import LiveRun
from harness.state import RunState, ScopeState


class LiveScope:
    """A nested scope that was opened. Use everything but `state` with the run's lock held."""

    def __init__(
        self, live: LiveRun, opened: e.ScopeOpened, outer: LiveScope | None, deadline: Deadline | None
    ) -> None:
        self.scope_id = opened.scope_id
        self.boundary = opened.boundary
        self.repeats = Repeats()
        self._live = live
        self._opened_us = live.elapsed_us()
        self._timeout_us = opened.timeout_us
        self.deadline = deadline
        """Its own, where that comes before those around it."""
        self._outer = outer
        self._inner: dict[str, LiveScope] = {}
        self._last = live.state.scopes[self.scope_id]
        if outer is not None:
            outer._inner[self.scope_id] = self

    def state(self, run: RunState) -> ScopeState:
        """Its limits and usage, as they stand or stood when it was left."""
        return run.scopes.get(self.scope_id, self._last)

    @property
    def is_open(self) -> bool:
        return self.scope_id in self._live.state.scopes

    def deadline_ns(self) -> int:
        """When its own deadline comes, on the run's clock; never before the run's where it has none."""
        return self._live.deadline.at_ns if self.deadline is None else self.deadline.at_ns

    def check_open(self) -> None:
        """Raise `ScopeExhausted` or `ScopeNotOpen` if nothing more may start in it."""
        self.check_entered()
        if (refusal := self.state(self._live.state).exhausted) is not None:
            raise self.error(refusal.resource, refusal.used, refusal.limit)

    def check_entered(self) -> None:
        """Raise `ScopeNotOpen` if it has been left."""
        if not self.is_open:
            raise ScopeNotOpen(self._live.session_id, self._live.run_id, scope=self.boundary)

    def find_lateness(self) -> Excess | None:
        """The excess of having passed its own deadline, if it has."""
        if self.deadline is None or not self.deadline.has_passed(self._live.monotonic_clock):
            return None
        return self.lateness()

    def lateness(self) -> Excess:
        """The excess of having come to its own deadline."""
        used_us = self._live.elapsed_us() - self._opened_us
        return Excess(DEADLINE, used_us, self._timeout_us or 0, scope_id=self.scope_id)

    def exhausted(self, excess: Excess) -> e.ScopeExhausted:
        """The event that ends it at a limit."""
        figures = excess.as_fields()
        fields = {name: figures[name] for name in ("resource", "used", "limit", "scope_id")}
        return self._live.event(e.ScopeExhausted, boundary=self.boundary, **fields)

    def exhaust(self, excess: Excess) -> None:
        """End it at a limit that no boundary was refused for."""
        self._live.record(self.exhausted(excess), is_awaited=False)

    def error(self, resource: str, used: int, limit: int) -> ScopeExhausted:
        live = self._live
        return ScopeExhausted(
            live.session_id, live.run_id, scope=self.boundary, resource=resource, used=used, limit=limit
        )

    def leave(self) -> list[e.ScopeClosed]:
        """The events that close it and what is open inside it, the innermost first."""
        events = [closed for inner in list(self._inner.values()) for closed in inner.leave()]
        if self._outer is not None:
            self._outer._inner.pop(self.scope_id, None)
        if not self.is_open:
            return events
        self._last = self.state(self._live.state)
        return [*events, self._live.event(e.ScopeClosed, boundary=self.boundary, scope_id=self.scope_id)]
