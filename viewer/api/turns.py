"""Turns that come no faster than so many a second, however many ask for one."""

from __future__ import annotations

import asyncio


class Turns:
    """Given in the order in which they were asked for. Those of the last second that nobody took are given at once."""

    def __init__(self, per_s: float) -> None:
        self._every_s = 1 / per_s
        self._last_s = 0.0
        self._asked = asyncio.Lock()

    async def take(self) -> None:
        """Wait for a turn; whoever gives up leaves it to the others."""
        now_s = asyncio.get_running_loop().time
        async with self._asked:
            next_s = max(self._last_s, now_s() - 1.0) + self._every_s
            await asyncio.sleep(next_s - now_s())
            self._last_s = next_s
