"""What came to a run from outside its code comes again where it is recorded: a signal, a cancelled task, a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from harness import events as e
from harness.budget.usage import Excess
from harness.cancellation import CancelReason
from harness.errors import RunEnded
from harness.events import REQUESTABLE, Event
from harness.live.run import LiveRun
from harness.replay.record import STARTS, STATEMENTS, Record

TERMINATION = "termination/run/1/1"
"""Where a run ends."""
AT_ONCE = REQUESTABLE | {"DEADLINE_EXCEEDED"}
"""Signals that may come between any two steps of the code; all others follow from what a boundary did."""


class Outside:
    """Tells a run what it was told."""

    def __init__(self, record: Record) -> None:
        self.root: asyncio.Future[Any] | None = None
        """The agent's own task, once it was started."""
        self._record = record
        self._has_cancelled = False
        self._signalled: set[int] = set()
        """Sequence numbers of the signals that were given, each of them once."""

    def how_ended(self) -> str | None:
        """How the agent's code ended, in words; None if it has not."""
        root = self.root
        if root is None or not root.done():
            return None
        error = asyncio.CancelledError() if root.cancelled() else root.exception()
        return "normally" if error is None else f"{type(error).__name__}: {error}"

    def tell_at_once(self, live: LiveRun, may_come: Callable[[Event], bool]) -> None:
        """Give the signal that is due right after what was just recorded; the run's lock is held.

        What was let through before it must have been called by then, or it would be refused as it was not.
        """
        due = self._record.due
        if isinstance(due, e.CancellationSignalled) and due.reason in AT_ONCE and may_come(due):
            live.lock.put_off(partial(self._signal, due, live))

    def tell(self, due: Event, live: LiveRun) -> bool:
        """Give what is due, if it comes from outside and the code had its chance to do it itself."""
        if isinstance(due, e.CancellationSignalled):
            if due.reason == CancelReason.TASK_CANCELLED.value:
                return self._cancel()
            before = self._record.before_due()
            follows_inside = before is not None and self._record.is_inside(before)
            return (due.reason in AT_ONCE or follows_inside) and self._signal(due, live)
        return self._is_cancelled_at(due) and self._cancel()

    def _signal(self, due: e.CancellationSignalled, live: LiveRun) -> bool:
        if self._record.seq_of(due) in self._signalled:
            return False
        self._signalled.add(self._record.seq_of(due))
        reason = CancelReason(due.reason)
        # Who tells a run to stop often cancels its task, too; a deadline does not.
        is_cancelled = any(_is_cancelled(event) for event in self._record.after_due())
        live.stop(reason, excess=self._excess())
        if is_cancelled and reason is not CancelReason.DEADLINE_EXCEEDED:
            self._cancel()
        return True

    def ended(self, live: LiveRun) -> RunEnded:
        """What refused work was told, once the run had been told to stop."""
        end = self._record.only(e.RunTerminated, TERMINATION)
        if live.termination is not None or end is None:
            return live.ended()
        return RunEnded(
            live.session_id,
            live.run_id,
            outcome=end.outcome,
            reason=end.reason,
            resource=end.resource,
            used=end.used,
            limit=end.limit,
        )

    def _excess(self) -> Excess | None:
        end = self._record.only(e.RunTerminated, TERMINATION)
        if end is None or end.resource is None or end.used is None or end.limit is None:
            return None
        return Excess(end.resource, end.used, end.limit)

    def _is_cancelled_at(self, due: Event) -> bool:
        """Whether this is the first thing that came of cancelling the agent's task: nothing started after it."""
        if not _is_cancelled(due) and not isinstance(due, e.AttemptAbandoned | e.ScopeClosed):
            return False
        for event in self._record.after_due():
            if isinstance(event, e.CancellationSignalled):
                return event.reason == CancelReason.TASK_CANCELLED.value
            if isinstance(event, STATEMENTS + STARTS + (e.ScopeExhausted,)):
                return False
        return False

    def _cancel(self) -> bool:
        """Cancel the agent's task, once."""
        # What runs on a thread cannot be cancelled.
        if self._has_cancelled or not isinstance(self.root, asyncio.Task) or self.root.done():
            return False
        self._has_cancelled = True
        return self.root.cancel()


def _is_cancelled(event: Event) -> bool:
    return isinstance(event, e.AttemptFailed) and event.error_type == "CancelledError"
