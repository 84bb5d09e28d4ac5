"""The rule of lanes: after a submission that was lost, a run takes nothing until one says that it resumes."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, NamedTuple

from harness.errors import LedgerUnavailable
from harness.journal import Recorded
from ledger.append.prepared import Append

log = logging.getLogger(__name__)


class Waiting(NamedTuple):
    """An append, and who waits for it."""

    append: Append
    future: Future[Recorded]
    submitted_s: float
    """By `time.perf_counter`."""


class Lanes:
    """Which runs have lost a submission, the latest `runs_max` of them."""

    def __init__(self, runs_max: int) -> None:
        self._runs_max = runs_max
        self._broken: OrderedDict[str, None] = OrderedDict()

    def admits(self, append: Append) -> bool:
        """Whether the run has its turn; one that resumes has it from now on."""
        if append.run_id in self._broken and not append.resumes:
            return False
        self._broken.pop(append.run_id, None)
        return True

    def lose(self, appends: Iterable[Append]) -> None:
        """They were not stored, although they were right."""
        self._broken |= dict.fromkeys(append.run_id for append in appends)
        while len(self._broken) > self._runs_max:
            self._broken.popitem(last=False)


def lost_before() -> LedgerUnavailable:
    """What an append fails with that is not admitted."""
    return LedgerUnavailable("an earlier submission of this run was not stored")


def answer(future: Future[Any], result: Any) -> None:
    """Complete the future; whatever its callbacks raise, even `SystemExit`, must not end the thread that does it."""
    try:
        if isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)
    except BaseException:
        log.exception("what waited for the ledger raised")


def refused_in_child() -> Future[Any]:
    """The answer to whoever uses the ledger of a process that has forked."""
    future: Future[Any] = Future()
    future.set_exception(LedgerUnavailable("a forked process cannot use its parent's ledger"))
    return future
