"""Answers that go on while somebody listens: whoever is not let in any more is one that has gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.types import Message, Receive

ADMITTED_AGAIN_S: Final = 10.0
"""How often a listener is looked up again."""


def while_admitted(receive: Receive, is_admitted: Callable[[], Awaitable[bool]]) -> Receive:
    """What tells of a client that is not let in any more as of one that has left."""

    async def received() -> Message:
        coming = asyncio.ensure_future(receive())
        try:
            while not (await asyncio.wait({coming}, timeout=ADMITTED_AGAIN_S))[0]:
                if not await is_admitted():
                    return {"type": "http.disconnect"}
            return coming.result()
        finally:
            coming.cancel()

    return received
