"""Waiting in an event loop for futures that other threads complete, without ever cancelling them."""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import Future
from typing import Any, TypeVar

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


async def wait_through(future: Future[Any], until_s: float) -> asyncio.CancelledError | None:
    """Wait until the future is done, or the loop's time is `until_s`, whatever cancels the waiting task meanwhile.

    The latest such cancellation is returned, for the caller to raise once it has done what it must.
    """
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            async with asyncio.timeout_at(until_s):
                await result_of(future)
        except asyncio.CancelledError as error:
            cancelled = error
        except Exception:  # noqa: BLE001 - the result is for the caller to look at, and in time it is none
            break
    return cancelled
