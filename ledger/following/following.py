"""Following the log: every event once, in the public order, as it comes (SPEC E8).

All followers of a reader share one watch of the log's end, and what it has read of late. A follower is only a place in
the order: it takes what comes after from memory where it keeps up, and from the database where it does not; so nothing
is queued for it, and a slow one costs the others nothing. Who waits is woken by what it wants, and by nothing else:
what is appended to one run costs those that follow others nothing.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Iterator
from itertools import chain
from typing import Protocol

from ledger.errors import AheadOfLog
from ledger.following.leaves import START, Leaf, Leaves, Wanted
from ledger.loop_thread import cancelled

PAGE_EVENTS = 256
"""Events read at once, for one follower or for all that keep up."""
RECENT_EVENTS = 1_024
"""Events kept for those that keep up."""
REST_S = 0.02
"""Between two looks at a log that keeps growing."""
IDLE_S = 1.0
"""The watch ends when nobody has waited for so long."""

Waiting = asyncio.Future[Leaves | None]
"""For what one follower wants, or for None where it has to look for itself."""


class Tail(Protocol):
    """The end of a log, watched."""

    async def grows(self) -> bool:
        """Whether something may have come since the last call: at once if so, else after a while."""

    async def close(self) -> None: ...


class Source(Protocol):
    """Where followers read."""

    async def leaves(self, wanted: Wanted, after: int, limit: int) -> Leaves:
        """The next events after a place, or where the log ends."""

    async def last_leaf(self) -> int:
        """The last place."""

    def tail(self) -> Tail:
        """A watch of the log's end; raises what is wrong with the log."""


class Following:
    """The watch that the followers of one reader share; it runs while somebody waits."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._recent: list[Leaf] = []
        self._before = START
        """The place after which the recent events begin,"""
        self._position = START
        """and the one they reach to."""
        self._waiting: dict[Wanted, set[Waiting]] = {}
        self._is_watching = False
        """Whether whatever comes after the position will be read."""
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting_count(self) -> int:
        """Followers that wait for something new."""
        return sum(map(len, self._waiting.values()))

    async def next(self, wanted: Wanted, after: int, limit: int) -> Leaves:
        """The next events that are wanted, as soon as there is one; `AheadOfLog` where the log ends before `after`."""
        while True:
            leaves = self.remembered(wanted, after, limit) or await self._source.leaves(wanted, after, limit)
            if leaves.position < after:
                raise AheadOfLog(after, leaves.position)
            if leaves.position == after:
                leaves = _beyond(after, limit, await self._coming(wanted, after))
            if leaves.events:
                return leaves
            after = leaves.position

    async def close(self) -> None:
        """End the watch; who waits is told what reading says of a log that was closed."""
        await cancelled(self._task)
        self._wake()

    def remembered(self, wanted: Wanted, after: int, limit: int) -> Leaves | None:
        """The next events as far as they are in memory; None where they have to be read."""
        if after == self._position and self._is_watching:
            return Leaves((), after)
        if not self._before <= after < self._position:
            return None
        start = bisect_right(self._recent, after, key=_place)
        events = self._recent[start : start + limit]
        return Leaves([leaf for leaf in events if wanted.has(leaf[1])], events[-1][0])

    async def _coming(self, wanted: Wanted, after: int) -> Leaves:
        """Wait for what is wanted; without events where more is known to have come, of which others may want some."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())
        if self._position > after:
            return Leaves((), after)
        came: Waiting = asyncio.get_running_loop().create_future()
        alike = self._waiting.setdefault(wanted, set())
        alike.add(came)
        try:
            return await came or Leaves((), after)
        finally:
            alike.discard(came)
            if not alike:
                self._waiting.pop(wanted, None)

    async def _watch(self) -> None:
        now_s = asyncio.get_running_loop().time
        try:
            tail = self._source.tail()
            try:
                await self._skip_ahead()
                self._is_watching = True
                until_s = now_s() + IDLE_S
                while now_s() < until_s:
                    if await tail.grows():
                        await self._read_on()
                        await asyncio.sleep(REST_S)
                    if self._waiting:
                        until_s = now_s() + IDLE_S
            finally:
                self._is_watching = False
                await tail.close()
        except Exception as error:  # noqa: BLE001 - it is told to everybody who waits
            self._wake(error)
        if any(not came.done() for came in self._all_waiting()):
            # Somebody came in the last moment.
            self._task = asyncio.create_task(self._watch())

    async def _skip_ahead(self) -> None:
        """What came while nobody waited, if it is much, each follower reads for itself."""
        last = await self._source.last_leaf()
        if last - self._position > PAGE_EVENTS:
            self._recent.clear()
            self._before = self._position = last
            self._wake()

    async def _read_on(self) -> None:
        while True:
            leaves = await self._source.leaves(Wanted(), self._position, PAGE_EVENTS)
            if not leaves.events:
                return
            self._recent.extend(leaves.events)
            self._position = leaves.position
            spare = len(self._recent) - RECENT_EVENTS
            if spare > 0:
                self._before = self._recent[spare - 1][0]
                del self._recent[:spare]
            self._hand_over(leaves)
            if len(leaves.events) < PAGE_EVENTS:
                return

    def _hand_over(self, leaves: Leaves) -> None:
        """To all who wait for some of it; picked out once for those that want the same."""
        picked: dict[Wanted, list[Leaf]] = {}
        for leaf in leaves.events:
            for wanted in Wanted.with_it(leaf[1]):
                if wanted in self._waiting:
                    picked.setdefault(wanted, []).append(leaf)
        for wanted, events in picked.items():
            for came in self._waiting[wanted]:
                if not came.done():
                    came.set_result(Leaves(events, leaves.position))

    def _wake(self, error: Exception | None = None) -> None:
        """Let all who wait look for themselves."""
        for came in self._all_waiting():
            if not came.done():
                came.set_result(None) if error is None else came.set_exception(error)

    def _all_waiting(self) -> Iterator[Waiting]:
        return chain.from_iterable(self._waiting.values())


class Follower:
    """An asynchronous iterator of `(leaf_index, RecordedEvent)`, which waits for what is still to come.

    It holds nothing that would have to be closed: whoever has enough lets go of it.
    """

    def __init__(self, following: Following, wanted: Wanted, after: int) -> None:
        self.position = after
        """The place up to which everything wanted has been given."""
        self._following = following
        self._wanted = wanted
        self._given: list[Leaf] = []
        self._reached = after

    def __aiter__(self) -> Follower:
        return self

    async def __anext__(self) -> Leaf:
        if not self._given:
            self._given = [*reversed(await self.page())]
        leaf = self._given.pop()
        self.position = leaf[0] if self._given else self._reached
        return leaf

    async def page(self, limit: int = PAGE_EVENTS) -> list[Leaf]:
        """The next events, at least one and at most `limit`, as soon as there are any."""
        if self._given:
            events, self._given = self._given[::-1], []
        else:
            leaves = await self._following.next(self._wanted, self._reached, limit)
            events, self._reached = list(leaves.events), leaves.position
        self.position = self._reached
        return events

    def at_hand(self, limit: int = RECENT_EVENTS) -> list[Leaf]:
        """The next events that need neither waiting nor reading, perhaps none."""
        leaves = self._following.remembered(self._wanted, self._reached, limit)
        if self._given or leaves is None:
            return []
        self.position = self._reached = leaves.position
        return list(leaves.events)


def _beyond(after: int, limit: int, came: Leaves) -> Leaves:
    """Of what has come as much as is asked for; the watch may have begun before that place."""
    events = came.events[bisect_right(came.events, after, key=_place) :]
    if len(events) > limit:
        return Leaves(events[:limit], events[limit - 1][0])
    return Leaves(events, max(after, came.position))


def _place(leaf: Leaf) -> int:
    return leaf[0]
