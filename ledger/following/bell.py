"""Rung by a writer whenever something has become durable, and heard in whatever loops listen in its process."""

from __future__ import annotations

import asyncio
import contextlib


class Bell:
    """`ring` may be called from any thread, and costs nothing where nobody listens."""

    def __init__(self) -> None:
        self._listening: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}

    def listen(self) -> asyncio.Event:
        """Set at each ring, in the running loop, until `leave`; whoever hears it clears it."""
        heard = asyncio.Event()
        self._listening[heard] = asyncio.get_running_loop()
        return heard

    def leave(self, heard: asyncio.Event) -> None:
        """Listen no more."""
        self._listening.pop(heard, None)

    def ring(self) -> None:
        """Wake who listens."""
        if self._listening:
            for heard, loop in list(self._listening.items()):
                if not heard.is_set():
                    with contextlib.suppress(RuntimeError):  # Its loop may have closed.
                        loop.call_soon_threadsafe(heard.set)
