"""What this server has itself found out of whether runs are as they were recorded, kept for a while.

A check takes as long as its run is. So a short run is checked whenever somebody looks at it and it has changed since;
a long one only when asked, and then what was found is shown, with its time, until it is asked for again.
"""

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from ledger.audit.signing.stored import StoredCheckpoint
from ledger.errors import LedgerError
from ledger.records import RunDetail
from ledger.verifying import RunCheck

log = logging.getLogger(__name__)

UNASKED_EVENTS_MAX = 1_000
"""A run with more is checked only when somebody asks."""
CHECKS_KEPT_MAX = 1_000
"""What was found of runs that nobody has looked at for longest is forgotten."""
CHECKS_AT_ONCE = 2
"""Who looks at a run meanwhile is told that it was not checked yet."""
CHECK_TIMEOUT_S = 60.0
"""A check that takes longer is given up."""


class Checker(Protocol):
    """The part of `ledger.LedgerReader` that is used here."""

    async def newest_checkpoint(self) -> StoredCheckpoint | None:
        """What was signed last; None if nothing ever was."""

    async def check_run(self, session_id: str, run_id: str) -> RunCheck:
        """Look at one run from all sides."""


@dataclass(frozen=True, slots=True)
class Unchecked:
    """Nothing was found out, and why."""

    why: Literal["long", "busy", "slow", "unreadable"]


class _Kept(NamedTuple):
    head_link: str
    """The run's last link when it was checked."""
    check: RunCheck


class Proofs:
    """The checks of one server."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()
        self._under_way = 0

    async def of(self, run: RunDetail, *, is_asked: bool = False) -> RunCheck | Unchecked:
        """What is known of the run as it was read; `is_asked` has it checked now, however long it is."""
        is_long = run.event_count > UNASKED_EVENTS_MAX
        try:
            found = None if is_asked else await self._remembered(run, is_long)
            if found is not None:
                return found
            if is_long and not is_asked:
                return Unchecked("long")
            if self._under_way >= CHECKS_AT_ONCE:
                return Unchecked("busy")
            return await self._check(run)
        except TimeoutError:
            return Unchecked("slow")
        except LedgerError as error:
            log.warning("a run could not be checked: %s", error.code)
            return Unchecked("unreadable")

    async def _remembered(self, run: RunDetail, is_long: bool) -> RunCheck | None:
        """What was found before, if nothing came since that could say more."""
        key = run.summary.session_id, run.summary.run_id
        kept = self._kept.get(key)
        if kept is None or kept.head_link != run.head_link:
            return None
        self._kept.move_to_end(key)
        check = kept.check
        if is_long or (check.holds and check.anchored_count == check.event_count):
            return check
        return check if await self._checker.newest_checkpoint() == check.checkpoint else None

    async def _check(self, run: RunDetail) -> RunCheck:
        key = run.summary.session_id, run.summary.run_id
        self._under_way += 1
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                check = await self._checker.check_run(*key)
        finally:
            self._under_way -= 1
        self._kept[key] = _Kept(run.head_link, check)
        self._kept.move_to_end(key)
        while len(self._kept) > CHECKS_KEPT_MAX:
            self._kept.popitem(last=False)
        return check
