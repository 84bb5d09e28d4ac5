"""Callers that are not let go on yet: in the record they were slower than the end of their run."""

from __future__ import annotations

import asyncio

from harness.hooks.observers import Observed
from harness.replay.record import ENDS, Record


class Holding:
    """Those that wait for the end of their run."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._held: list[asyncio.Future[None]] = []

    async def hold(self, observed: Observed) -> None:
        """Let the caller of what has ended go on only when its run has been told to stop, if that came first.

        What it does then is refused, as it was. The end of the run cuts this short.
        """
        if isinstance(observed.event, ENDS) and self._record.is_last(observed.event.boundary):
            held = asyncio.get_running_loop().create_future()
            self._held.append(held)
            await held

    def release(self) -> bool:
        """Let all go on after all; False if there are none."""
        held, self._held = [each for each in self._held if not each.done()], []
        for each in held:
            each.set_result(None)
        return bool(held)
