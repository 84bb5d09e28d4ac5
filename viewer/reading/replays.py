"""Walks through runs that were begun and are kept, so that a step in a long run does not fold it from its beginning."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import NamedTuple

from ledger.audit.walking.replay import Moment, Replay
from viewer.reading.reader import Reader

WALKS_MAX = 8
"""Kept at once, each with the states at some 200 events;"""
MARKS_MAX = 2_000
"""and so many marks of them all, some kilobytes each: enough for 400,000 events. Above either the walk that was used
longest ago is let go, and begins anew when it is asked for."""


class Place(NamedTuple):
    """Where a run stands, and where it stood just before."""

    before: Moment | None
    moment: Moment


class _Walk(NamedTuple):
    replay: Replay
    lock: asyncio.Lock
    """A replay is not for several tasks at once."""


class Replays:
    """The walks through one ledger's runs. They never go stale: what was once appended does not change."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._walks: OrderedDict[tuple[str, str], _Walk] = OrderedDict()

    def __len__(self) -> int:
        return len(self._walks)

    @property
    def mark_count(self) -> int:
        """How many marks are kept."""
        return sum(walk.replay.mark_count for walk in self._walks.values())

    async def at(self, session_id: str, run_id: str, seq: int) -> Place:
        """The run just after event `seq`; errors as of `Replay.at`."""
        key = (session_id, run_id)
        walk = self._walks.get(key) or _Walk(Replay.read(self._reader, session_id, run_id), asyncio.Lock())
        self._walks[key] = walk
        self._walks.move_to_end(key)
        try:
            async with walk.lock:
                moment = await walk.replay.at(seq)
                return Place(await walk.replay.before(seq), moment)
        finally:
            while len(self._walks) > WALKS_MAX or self.mark_count > MARKS_MAX:
                self._walks.popitem(last=False)
