"""A client that goes away tells its run to stop: for any ASGI server and framework (SPEC H3, CASES 17).

In Starlette: `async with harness.run(...) as run, stop_on_disconnect(run, request.receive): ...`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from harness.cancellation import CancelReason
from harness.context import RunContext

log = logging.getLogger(__name__)

Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
"""What an ASGI application gets to receive messages with."""

DISCONNECTED = frozenset({"http.disconnect", "websocket.disconnect"})


@contextlib.asynccontextmanager
async def stop_on_disconnect(run: RunContext, receive: Receive) -> AsyncIterator[None]:
    """Until the block is left, a disconnect that the server reports signals `CLIENT_DISCONNECTED`.

    Enter it inside the run's block, once the request's body was read: other messages are passed over. Leave it before
    the response is complete, since servers report a disconnect after that, too.
    """
    watching = asyncio.create_task(_watch(run, receive))
    try:
        yield
    finally:
        watching.cancel()


async def _watch(run: RunContext, receive: Receive) -> None:
    try:
        while (await receive()).get("type") not in DISCONNECTED:
            pass
    except Exception as error:  # noqa: BLE001 - it is the server's, and the run goes on without being told
        log.warning("run %s: its client cannot be watched: %s", run.run_id, type(error).__name__)
    else:
        run.cancellation.signal(CancelReason.CLIENT_DISCONNECTED)
