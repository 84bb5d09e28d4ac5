"""What this server has itself found out of whether runs are as they were recorded, kept for a while.

A check takes as long as its run is. So a short run is checked whenever somebody looks at it and something of it reads
otherwise than when it was checked, be that added or forged; a long one only when asked, and then what was found is
shown, with its time, until it is asked for again.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal, NamedTuple, Protocol

import orjson

from ledger.audit.signing.stored import StoredCheckpoint
from ledger.errors import LedgerError
from ledger.records import RecordedEvent, RunTrace
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
    shown: bytes
    """What the run read as when it was checked."""
    check: RunCheck


class Proofs:
    """The checks of one server."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()
        self._under_way = 0

    async def of(
        self, trace: RunTrace, events: Sequence[RecordedEvent], *, is_asked: bool = False
    ) -> RunCheck | Unchecked:
        """What is known of the run as it was read; `is_asked` has it checked now, however long it is."""
        key = trace.run.summary.session_id, trace.run.summary.run_id
        is_long = trace.run.event_count > UNASKED_EVENTS_MAX
        shown = _shown(trace, () if is_long else events, is_long=is_long)
        try:
            found = None if is_asked else await self._remembered(key, shown, is_long=is_long)
            if found is not None:
                return found
            if is_long and not is_asked:
                return Unchecked("long")
            if self._under_way >= CHECKS_AT_ONCE:
                return Unchecked("busy")
            return await self._check(key, shown)
        except TimeoutError:
            return Unchecked("slow")
        except LedgerError as error:
            log.warning("a run could not be checked: %s", error.code)
            return Unchecked("unreadable")

    async def _remembered(self, key: tuple[str, str], shown: bytes, *, is_long: bool) -> RunCheck | None:
        """What was found before, if it was of the same, and nothing came since that could say more."""
        kept = self._kept.get(key)
        if kept is None or kept.shown != shown:
            return None
        self._kept.move_to_end(key)
        check = kept.check
        if is_long or (check.holds and check.anchored_count == check.event_count):
            return check
        if not check.holds:
            return None  # it may have been mended, where nothing of it is shown
        return check if await self._checker.newest_checkpoint() == check.checkpoint else None

    async def _check(self, key: tuple[str, str], shown: bytes) -> RunCheck:
        self._under_way += 1
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                check = await self._checker.check_run(*key)
        finally:
            self._under_way -= 1
        self._kept[key] = _Kept(shown, check)
        self._kept.move_to_end(key)
        while len(self._kept) > CHECKS_KEPT_MAX:
            self._kept.popitem(last=False)
        return check


def _shown(trace: RunTrace, events: Sequence[RecordedEvent], *, is_long: bool) -> bytes:
    """A hash of all that was read of the run; of a long one, of which each page reads another part, of its own row."""
    works = () if is_long else (trace.agent_steps, trace.tool_invocations)
    read = [trace.run, works, trace.self_evaluation, trace.answer, trace.feedback, events]
    return sha256(orjson.dumps(read, default=_plain)).digest()


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(f"nothing of a run is a {type(value).__name__}")
