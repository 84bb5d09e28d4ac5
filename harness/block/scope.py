"""The block of a nested scope: a part of a run with limits and a deadline of its own, which only narrow (SPEC D5)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import TracebackType

from harness import events as e
from harness.budget.limits import ScopeLimits
from harness.context import RunContext, check_run
from harness.deadline import Deadline, check_timeout
from harness.engine import Engine
from harness.errors import InvalidInput
from harness.handles import Budget, RunCapacity
from harness.ids import boundary_id, check_name
from harness.live.accounts import Accounts
from harness.live.ordinals import Ordinals
from harness.live.scope import LiveScope

MAX_OPEN_SCOPES = 1_000
"""Nested scopes of one run that are open at a time."""


class ScopeBlock:
    """`with` this: what is done with the context that it gives is charged to the scope, to those around it, and to
    the run. It is closed on every way out; then its context is of no use any more."""

    def __init__(
        self, engine: Engine, run: RunContext, name: str, limits: ScopeLimits | None, timeout_s: float | None
    ) -> None:
        if not isinstance(limits, ScopeLimits | None):
            raise InvalidInput("limits", f"must be ScopeLimits, not {type(limits).__name__}")
        self._limits = (limits or ScopeLimits()).as_map()
        engine.check_priced(limits or ScopeLimits())
        self._timeout_s = None if timeout_s is None else check_timeout("timeout_s", timeout_s)
        if not self._limits and timeout_s is None:
            raise InvalidInput("limits", "must hold a limit where timeout_s is not given: a scope narrows something")
        self._run = check_run(run)
        self._name = check_name("name", name)
        self._ordinal = run.next_ordinal("scope", self._name)
        self._scope: LiveScope | None = None

    def __enter__(self) -> RunContext:
        """The context of the scope; `RunEnded`, `ScopeExhausted` or `ScopeNotOpen` where nothing may start any more."""
        run, live = self._run, self._run.live
        with live.lock:
            if self._scope is not None:
                raise InvalidInput("scope", "was entered before: open a new one")
            run.accounts.check_open()
            if len(live.state.scopes) >= MAX_OPEN_SCOPES:
                raise InvalidInput("scope", f"would be one more than {MAX_OPEN_SCOPES} open in this run")
            scope = self._scope = self._open()
        accounts = Accounts(live, (*run.accounts.scopes, scope))
        return replace(
            run,
            deadline=scope.deadline or run.deadline,
            budget=Budget(accounts),
            capacity=RunCapacity(accounts),
            accounts=accounts,
            path=(*run.path, "scope", self._name, str(self._ordinal), "1"),
            ordinals=Ordinals(),
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Record that it is closed, and what is open inside it; nothing where the run has ended meanwhile."""
        assert self._scope is not None, "the block was entered"
        self._run.live.lock.when_free(partial(self._close, self._scope))

    def _close(self, scope: LiveScope) -> None:
        live = self._run.live
        with live.lock:
            if live.termination is None and (closed := scope.leave()):
                live.record(*closed, is_awaited=False)

    def _open(self) -> LiveScope:
        """Record the beginning; lock held."""
        run, live = self._run, self._run.live
        # One look at the clock: what is on record of its time and its time-out is what it goes by.
        now_ns = live.monotonic_clock.now_ns()
        deadline = None if self._timeout_s is None else Deadline(now_ns + round(self._timeout_s * 1_000_000_000))
        if deadline is not None and deadline.at_ns >= run.deadline.at_ns:
            deadline = None
        opened = live.event(
            e.ScopeOpened,
            boundary=boundary_id(run.path, "scope", self._name, self._ordinal, 1),
            parent_attempt_id=run.attempt_id,
            scope_id=live.next_scope_id(),
            parent_scope_id=run.accounts.scope_id,
            limits=self._limits,
            timeout_us=None if deadline is None else (deadline.at_ns - now_ns) // 1_000,
            elapsed_us=live.elapsed_us(now_ns),
        )
        live.record(opened, is_awaited=False)
        return LiveScope(live, opened, run.accounts.scopes[-1] if run.accounts.scopes else None, deadline)
