"""A thread with an event loop of its own, for connections that no caller ever touches."""

from __future__ import annotations

import asyncio
import os
import selectors
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future
from concurrent.futures import thread as pools
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """A running loop. The thread ends with the process, or when it is stopped."""

    def __init__(self, name: str) -> None:
        self._selector = selectors.DefaultSelector()
        self.loop = asyncio.SelectorEventLoop(self._selector)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        _RUNNING.add(self)

    def call(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Do `work` there."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    async def done(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` comes to there. Whoever waits may be cancelled: what is under way goes on to its end."""
        return await asyncio.shield(asyncio.wrap_future(self.call(work)))

    def stop(self, timeout_s: float | None = None) -> None:
        """End the thread; what is under way there is cancelled."""
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(timeout_s)

    def leave_to_parent(self) -> None:
        """In a forked child: have nothing to do with the kernel's list of sockets, which is still the parent's."""
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        os.dup2(nothing, self._selector.fileno(), inheritable=False)
        os.close(nothing)

    def _run(self) -> None:
        try:
            self.loop.run_forever()
            self.loop.run_until_complete(_cancel_others())
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.loop.close()


def is_process_ending() -> bool:
    """Whether thread pools take no more work, as the interpreter is on its way out; a thread of ours may be at work."""
    return pools._shutdown


async def cancelled(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancel the tasks, those of them that there are, and wait until they have ended, however that is."""
    there = [task for task in tasks if task is not None]
    for task in there:
        task.cancel()
    await asyncio.gather(*there, return_exceptions=True)


async def _cancel_others() -> None:
    await cancelled(*asyncio.all_tasks() - {asyncio.current_task()})


_RUNNING: weakref.WeakSet[LoopThread] = weakref.WeakSet()


def _leave_to_parent() -> None:
    for thread in list(_RUNNING):
        if not thread.loop.is_closed():
            thread.leave_to_parent()


os.register_at_fork(after_in_child=_leave_to_parent)
