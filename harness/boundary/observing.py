"""Observers are told how attempts start and end, once that is on record; they can neither change nor stop a run.

They are awaited one after the other, each for a bounded time: an operation begins, and its caller goes on, after that.
One that raises, or is too slow, is named in the log, without what it was told.
"""

from __future__ import annotations

import asyncio
import logging
from types import MappingProxyType
from typing import Any

from harness import events as e
from harness.boundary.attempt import Attempt
from harness.concurrency.interruption import Interruption
from harness.concurrency.waiting import result_of
from harness.hooks.calling import call_hook, hook_name
from harness.hooks.observers import Observed

log = logging.getLogger(__name__)


async def observe_start(attempt: Attempt) -> None:
    """Tell of a start. What comes meanwhile still counts: if nothing may start any more, the attempt is given up."""
    if not attempt.engine.observers or attempt.start is None:
        return
    try:
        await _tell(attempt, attempt.start)
        with attempt.live.lock:
            attempt.run.accounts.check_granted()
    except BaseException:
        attempt.abandon(e.NOT_INVOKED)
        raise


async def observe_end(
    attempt: Attempt, interruption: Interruption, *, result: Any = None, error: BaseException | None = None
) -> None:
    """Tell of an end as soon as it is durable; of one that is not on record, nobody is told.

    Interrupting the run cuts this short, and no more: what is told has happened.
    """
    if not attempt.engine.observers or attempt.end is None or isinstance(error, GeneratorExit):
        return
    interruption.disarm()
    event, recorded = attempt.end
    try:
        await result_of(recorded)
        await _tell(attempt, event, result, error)
    except asyncio.CancelledError as cancelled:
        if interruption.take(cancelled) is None:
            raise
    except Exception:  # noqa: BLE001 - the next boundary says that it was lost (SPEC D1)
        return


async def _tell(
    attempt: Attempt, event: e.AttemptEvent, result: Any = None, error: BaseException | None = None
) -> None:
    engine, run = attempt.engine, attempt.run
    observed = Observed(run, event, MappingProxyType(attempt.operation.args), result, error)
    for observer in engine.observers:
        try:
            await call_hook(engine.threads, observer, observed, engine.hook_timeout_s)
        except Exception as problem:  # noqa: BLE001 - whatever it raises, the run goes on
            told = (run.run_id, hook_name(observer), type(problem).__name__, event.type)
            log.warning("run %s: observer %s raised %s over %s", *told)
