"""Answers that are sent part by part: nothing is made ahead of a client that does not read, and none is kept waiting.

A client that takes longer than `SEND_TIMEOUT_S` over one part is dropped, so that it holds no more than that part.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ledger.errors import LedgerError

log = logging.getLogger(__name__)

SEND_TIMEOUT_S = 10.0
"""How long a client may take to read what it is sent."""


class PartByPart(Response):
    """Sends each part as it is made; an answer that had to be cut short is not ended, so that its client notices."""

    def __init__(
        self,
        parts: AsyncGenerator[bytes, None] | Iterator[bytes],
        media_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(None, headers=headers, media_type=media_type)
        del self.headers["content-length"]
        self._parts = parts if isinstance(parts, AsyncGenerator) else _in_turns(parts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(left(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async with aclosing(self._parts) as parts:
                if scope["method"] != "HEAD":
                    async for part in parts:
                        if gone.done():
                            return
                        await say(send, part)
            await say(send, b"", more=False)
        except TimeoutError:
            log.info("an answer was cut, as its client did not read it")
        except LedgerError as error:
            log.warning("an answer was cut: %s", error.code)
        finally:
            gone.cancel()


async def _in_turns(parts: Iterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Parts that are made without waiting for anything: between them it is others' turn."""
    for part in parts:
        yield part
        await asyncio.sleep(0)


async def left(receive: Receive) -> None:
    """Wait until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def say(send: Send, data: bytes, *, more: bool = True) -> None:
    """Send a part; `TimeoutError` if the client does not read."""
    async with asyncio.timeout(SEND_TIMEOUT_S):
        await send({"type": "http.response.body", "body": data, "more_body": more})
