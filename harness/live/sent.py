"""The requests that one attempt was seen to send: the first is the attempt's own, each further one is hidden (SPEC H7).

Whoever watches the wire counts here (`harness.adapters.wire`). A hidden request is recorded and charged like the call
that it repeats, before it may go out.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future

from harness import events as e
from harness.cancellation import CancelReason
from harness.concurrency.interruption import Cause, Interrupted
from harness.errors import HarnessError
from harness.journal import Recorded
from harness.live.accounts import Accounts
from harness.retry import FailureType, TypedFailure

RETRIED = TypedFailure(FailureType.HIDDEN_RETRY, "stopped before it sent a request that is no recorded attempt")


class SentRequests:
    """A count for one attempt; any thread may use it."""

    __slots__ = ("_accounts", "_calls", "_count", "_stamp")

    def __init__(self, accounts: Accounts, stamp: Mapping[str, str | None], calls: Mapping[str, int]) -> None:
        """`stamp` is what every event of the attempt says of it, `calls` what a request more is charged."""
        self._accounts = accounts
        self._stamp = stamp
        self._calls = calls
        self._count = 0

    @property
    def count(self) -> int:
        """How many requests there were, also those that were not let out."""
        return self._count

    def add(self, *, ends_run: bool) -> Future[Recorded] | None:
        """Count a request that is about to be sent: None for the first, else when the record of it is durable.

        Raises `Interrupted` if it must not go out: it `ends_run`, it passes a limit, or the run ended before.
        """
        live = self._accounts.live
        with live.lock:
            self._count += 1
            if self._count == 1:
                return None
            recorded = None
            if live.failure is None:
                recorded = self._record(ends_run=ends_run)
            try:
                self._accounts.check_open()
            except HarnessError as error:
                raise stopped(error) from None
            return recorded

    def _record(self, *, ends_run: bool) -> Future[Recorded] | None:
        live = self._accounts.live
        detected = live.event(e.HiddenRetryDetected, request=self._count, usage=self._calls or None, **self._stamp)
        if ends_run and live.termination is None:
            return live.stop(CancelReason.HIDDEN_RETRY, before=(detected,)).recorded
        recorded = live.record(detected)
        if live.termination is None:
            self._accounts.end_if_overrun()
        return recorded


def stopped(error: HarnessError) -> Interrupted:
    """What to throw where a request must not go out: it passes through the client, and becomes `error` outside."""
    return Interrupted(Cause(RETRIED, lambda: error))
