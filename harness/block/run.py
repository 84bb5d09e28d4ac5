"""The block in which a run lives: it begins durably, and on every way out it ends exactly once (SPEC H5, D1)."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any

from harness import events as e
from harness.block.opening import Opening
from harness.boundary.capture import error_content, error_type, keep_content, seal_content
from harness.cancellation import CancelReason
from harness.concurrency.waiting import result_of, wait_through
from harness.content import SealedContent
from harness.context import RunContext
from harness.engine import Engine
from harness.errors import AlreadyTerminated, HarnessError, IllegalEvent, InvalidInput, TerminationNotRecorded
from harness.handles import Budget, Cancellation, Lifecycle, RunCapacity
from harness.ids import is_code
from harness.journal import Recorded
from harness.lifecycle import Outcome
from harness.live.accounts import Accounts
from harness.live.heeding import heed_requests
from harness.live.run import LiveRun
from harness.redaction import Captured, captured
from harness.state import RUNNING

RETRY_PAUSE_S = 0.05
"""Between two attempts to record the end of a run."""


class RunBlock:
    """`async with` this: a run from its durable beginning to its durable end."""

    def __init__(self, engine: Engine, opening: Opening) -> None:
        self._engine = engine
        self._opening = opening
        self._was_entered = False
        self._live: LiveRun | None = None
        self._heed_no_more: Callable[[], None] = lambda: None
        self._said: Captured | None = None
        """What the exception says that the block was left with."""

    async def __aenter__(self) -> RunContext:
        """Record the beginning; `LedgerUnavailable` or `InvalidInput` if it cannot be, and then there is no run."""
        if self._was_entered:
            raise InvalidInput("run", "was entered before: open a new one")
        self._was_entered = True
        self._loop = asyncio.get_running_loop()
        engine, opening = self._engine, self._opening
        started_ns = engine.monotonic_clock.now_ns()
        deadline, timeout_us = opening.deadline(started_ns)
        permit = await engine.permit(timeout_us / 1e6)
        try:
            live = self._live = opening.live_run(engine, started_ns, deadline)
            with live.lock:
                recorded = live.record(*opening.events(live, timeout_us), contents=opening.contents)
            await self._durable_beginning(live, recorded)
        finally:
            permit.release()
        live.block = self
        self._heed_no_more = heed_requests(engine.journal, live)
        accounts = Accounts(live)
        return RunContext(
            session_id=opening.session_id,
            run_id=opening.run_id,
            deadline=deadline,
            cancellation=Cancellation(live),
            budget=Budget(accounts),
            capacity=RunCapacity(accounts),
            retry_policies=opening.policies,
            lifecycle=Lifecycle(live),
            live=live,
            accounts=accounts,
            ordinals=live.ordinals,
        )

    async def _durable_beginning(self, live: LiveRun, recorded: Future[Recorded]) -> None:
        try:
            await result_of(recorded)
        except (AlreadyTerminated, IllegalEvent) as error:
            raise InvalidInput("run_id", f"{live.run_id} was used before") from error
        except asyncio.CancelledError as error:
            await self._close(live, error)
            raise
        except GeneratorExit as error:
            self._end_at_once(live, error)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Record the end. Without an exception, returns only for SUCCESS; any other outcome raises `RunEnded`.

        An exception from the block goes on unchanged, unless the end could not be recorded: then
        `TerminationNotRecorded` is raised from it. A cancellation of the task always wins, once the end is recorded.
        """
        live = self._live
        assert live is not None, "the block was entered"
        live.block = None
        if isinstance(error, GeneratorExit):
            self._end_at_once(live, error)
            return
        cancelled = await self._close(live, error)
        if cancelled is not None and not isinstance(error, asyncio.CancelledError):
            raise cancelled
        end = live.termination
        if error is None and end is not None and end.outcome is not Outcome.SUCCESS:
            raise live.ended()

    def __del__(self) -> None:
        """A block that nobody can leave any more ends its run. A collection may come anywhere, so the loop does it."""
        live = self._live
        if live is None or live.block is None or sys.is_finalizing():
            return
        live.block = None
        try:
            self._loop.call_soon_threadsafe(self._end_at_once, live, GeneratorExit())
        except RuntimeError:  # The loop has closed.
            self._end_at_once(live, GeneratorExit())

    def _end_at_once(self, live: LiveRun, error: BaseException) -> None:
        """Of a coroutine that is thrown away: it may not wait, perhaps has no loop, and nobody hears what it raises."""

        def end() -> None:
            self._decide(live, error)
            live.interrupt()
            if live.failure is not None or live.state.outcome == RUNNING:
                self._record_end(live, error)

        live.lock.when_free(end)

    async def _close(self, live: LiveRun, error: BaseException | None) -> asyncio.CancelledError | None:
        """Decide and record the end, trying again until it is durable; returns a cancellation of the task meanwhile."""
        try:
            return await self._closed(live, error)
        except GeneratorExit as thrown:
            self._end_at_once(live, error or thrown)
            raise

    async def _closed(self, live: LiveRun, error: BaseException | None) -> asyncio.CancelledError | None:
        self._decide(live, error)
        now_s = asyncio.get_running_loop().time
        cancelled = await self._drain(live, now_s() + self._engine.drain_timeout_s)
        close_by_s = now_s() + self._engine.close_timeout_s
        while True:
            try:
                recorded = self._record_end(live, error)
            except Exception as refused:  # noqa: BLE001 - whatever the journal raises, it takes no end
                recorded = Future()
                recorded.set_exception(refused)
            if recorded is None:
                return cancelled
            cancelled = await wait_through(recorded, close_by_s) or cancelled
            problem = recorded.exception() if recorded.done() else TimeoutError("no answer in time")
            if problem is None or isinstance(problem, AlreadyTerminated):
                return cancelled
            if now_s() >= close_by_s:
                break
            cancelled = await wait_through(Future(), min(close_by_s, now_s() + RETRY_PAUSE_S)) or cancelled
        if cancelled is not None or isinstance(error, asyncio.CancelledError):
            return cancelled
        outcome = live.termination.outcome if live.termination is not None else Outcome.FAILED
        raise TerminationNotRecorded(
            live.session_id, live.run_id, outcome=outcome.value, problem=str(problem) or type(problem).__name__
        ) from error

    async def _drain(self, live: LiveRun, until_s: float) -> asyncio.CancelledError | None:
        """Interrupt what is still in flight in other tasks, and let each record its end (SPEC D4)."""
        live.interrupt()
        left = live.interruptions.all_left()
        return None if left is None else await wait_through(left, until_s)

    def _decide(self, live: LiveRun, error: BaseException | None) -> None:
        self._heed_no_more()
        if error is None:
            live.decide(Outcome.SUCCESS, "COMPLETED")
        elif isinstance(error, asyncio.CancelledError | GeneratorExit):
            _stop(live, CancelReason.TASK_CANCELLED)
        elif isinstance(error, KeyboardInterrupt | SystemExit):
            _stop(live, CancelReason.SHUTDOWN)
        else:
            live.decide(Outcome.FAILED, failure_reason(error))

    def _record_end(self, live: LiveRun, error: BaseException | None) -> Future[Recorded] | None:
        """Submit the end; None if there is nothing to end, as the beginning was not stored or another ended the run."""
        if error is not None and self._said is None:
            self._said = captured(error_content(error), self._engine.capture.error)
        with live.lock:
            if live.failure is not None:
                if live.durable is None or isinstance(live.failure, AlreadyTerminated):
                    return None
                live.rewind()
            events, contents = self._closing(live, error)
            return live.record_end(*events, contents=contents)

    def _closing(
        self, live: LiveRun, error: BaseException | None
    ) -> tuple[tuple[e.RunEvent, ...], tuple[SealedContent, ...]]:
        """Everything that is left to say, in one append: open attempts, the signal, the answer, the end."""
        events: list[e.RunEvent] = []
        contents: list[SealedContent] = []
        for attempt in live.state.open_attempts.values():
            stamp = {"attempt_id": attempt.attempt_id, "parent_attempt_id": attempt.parent_attempt_id}
            events.append(live.event(e.AttemptAbandoned, boundary=attempt.boundary, reason="RUN_ENDED", **stamp))
        if live.cancel_reason is not None and live.state.cancel_signalled is None:
            events.append(live.signalled())
        if live.answer is not None and not live.state.answered:
            fields, sealed = seal_content(live, "answer", live.answer)
            events.append(live.event(e.AnswerRecorded, boundary=live.once("answer"), **fields))
            contents.extend(sealed)
        end, sealed = self._termination(live, error)
        return (*events, end), (*contents, *sealed)

    def _termination(
        self, live: LiveRun, error: BaseException | None
    ) -> tuple[e.RunTerminated, tuple[SealedContent, ...]]:
        decision = live.termination
        assert decision is not None, "the outcome was decided"
        fields: dict[str, Any] = {}
        sealed: tuple[SealedContent, ...] = ()
        if error is not None and self._said is not None and decision.outcome is Outcome.FAILED:
            fields, sealed, _ = keep_content(Accounts(live), "error", self._said)
            fields["error_type"] = error_type(error)
        if decision.excess is not None:
            figures = decision.excess.as_fields()
            fields |= {name: figures[name] for name in ("resource", "used", "limit")}
        end = live.event(
            e.RunTerminated,
            boundary=live.once("termination"),
            outcome=decision.outcome.value,
            reason=decision.reason,
            occurred_us=decision.decided_us,
            elapsed_us=decision.elapsed_us,
            **fields,
        )
        return end, sealed


def _stop(live: LiveRun, reason: CancelReason) -> None:
    with contextlib.suppress(Exception):  # What the journal refuses now is said again with the end.
        live.stop(reason)


def failure_reason(error: BaseException) -> str:
    """A stable code for what failed the run: the error's own where it is one of ours."""
    code = error.code.upper() if isinstance(error, HarnessError) else ""
    return code if is_code(code) else "UNHANDLED_EXCEPTION"
