"""Waiting in an event loop for futures that other threads complete, without ever cancelling them."""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def result_of(future: Future[T]) -> T:
    """The future's result. Cancelling the waiting task leaves the future alone, unlike `asyncio.wrap_future`."""
    if not future.done():
        loop = asyncio.get_running_loop()
        woken = loop.create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        def wake_from_any_thread(_: Future[T]) -> None:
            # A loop that has closed has nobody left to wake.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(wake)

        future.add_done_callback(wake_from_any_thread)
        await woken
    return future.result()


async def result_despite_cancellation(future: Future[T], timeout_s: float) -> T:
    """The future's result within `timeout_s`, else `TimeoutError`.

    A cancellation of the waiting task is held back until the result is there, then raised; it wins over the result.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + timeout_s
    cancelled: asyncio.CancelledError | None = None
    while True:
        try:
            async with asyncio.timeout_at(until):
                result = await result_of(future)
        except asyncio.CancelledError as error:
            cancelled = error
            continue
        except Exception:
            if cancelled is not None:
                raise cancelled from None
            raise
        if cancelled is not None:
            raise cancelled
        return result
