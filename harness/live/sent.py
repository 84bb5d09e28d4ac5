"""The requests that one attempt was seen to send: the first is the attempt's own, each further one is hidden, and so is
one that comes after the attempt's end (SPEC H7).

Whoever watches the wire counts here (`harness.adapters.wire`). A hidden request is recorded and charged like the call
that it repeats, before it may go out.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future

from harness import events as e
from harness.cancellation import CancelReason
from harness.concurrency.interruption import DEADLINE_PASSED, Cause, Interrupted
from harness.errors import HarnessError, ScopeExhausted
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
        """Count a request that is about to be sent: None for the attempt's own, else when its record is durable.

        Raises `Interrupted` if it must not go out: it `ends_run`, it passes a limit, or the run ended before.
        """
        live = self._accounts.live
        with live.lock:
            self._count += 1
            is_own = self._count == 1 and self._is_at_work()
            recorded = self._record(ends_run=ends_run) if not is_own and live.failure is None else None
            try:
                if is_own:
                    self._accounts.check_granted()
                else:
                    self._accounts.check_open()
            except HarnessError as error:
                raise (self._cut_off(error) if is_own else stopped(error)) from None
            return recorded

    def _cut_off(self, error: HarnessError) -> Interrupted:
        """What to throw where the attempt's own request comes too late: that retries nothing, and is recorded so."""
        if self._accounts.live.termination is not None:
            return Interrupted(self._accounts.live.cause())
        return Interrupted(Cause(DEADLINE_PASSED if isinstance(error, ScopeExhausted) else error, lambda: error))

    def pass_over(self, count: int) -> None:
        """Have so many counted that are not seen here: those of an operation that is executed again send nothing."""
        self._count = count

    def _is_at_work(self) -> bool:
        """Whether the operation is not known to have come to its end; one that was abandoned may be at work."""
        state, attempt_id = self._accounts.live.state, self._stamp["attempt_id"]
        return attempt_id in state.open_attempts or attempt_id in state.abandoned_attempts

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
