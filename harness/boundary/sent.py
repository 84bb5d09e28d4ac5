"""The requests that one attempt was seen to send: the first is the attempt's own, each further one is hidden (SPEC H7).

Whoever watches the wire counts here (`harness.adapters.wire`). A hidden request is recorded and charged like the call
that it repeats, before it may go out.
"""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

from harness import events as e
from harness.cancellation import CancelReason
from harness.errors import HarnessError
from harness.journal import Recorded
from harness.live.interruption import Cause, Interrupted
from harness.retry import FailureType, TypedFailure

if TYPE_CHECKING:
    from harness.boundary.attempt import Attempt

RETRIED = TypedFailure(FailureType.HIDDEN_RETRY, "stopped before it sent a request that is no recorded attempt")


class SentRequests:
    """A count for one attempt; any thread may use it."""

    __slots__ = ("_attempt", "_count")

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._count = 0

    @property
    def count(self) -> int:
        """How many requests there were, also those that were not let out."""
        return self._count

    def add(self, *, ends_run: bool) -> Future[Recorded] | None:
        """Count a request that is about to be sent: None for the first, else when the record of it is durable.

        Raises `Interrupted` if it must not go out: it `ends_run`, it passes a limit, or the run ended before.
        """
        live, accounts = self._attempt.live, self._attempt.run.accounts
        with live.lock:
            self._count += 1
            if self._count == 1:
                return None
            recorded = None
            if live.failure is None:
                recorded = self._record(ends_run=ends_run)
            try:
                accounts.check_open()
            except HarnessError as error:
                raise stopped(error) from None
            return recorded

    def _record(self, *, ends_run: bool) -> Future[Recorded] | None:
        attempt, live = self._attempt, self._attempt.live
        usage = attempt.operation.calls or None
        detected = attempt.event(e.HiddenRetryDetected, request=self._count, usage=usage)
        if ends_run and live.termination is None:
            return live.stop(CancelReason.HIDDEN_RETRY, before=(detected,)).recorded
        recorded = live.record(detected)
        if live.termination is None:
            attempt.run.accounts.end_if_overrun()
        return recorded


def stopped(error: HarnessError) -> Interrupted:
    """What to throw where a request must not go out: it passes through the client, and becomes `error` outside."""
    return Interrupted(Cause(RETRIED, lambda: error))
