"""Shares of a ledger, looked at by this process and by helpers, each of which takes the next one when it is done.

This process does not wait for the others to be ready: it has begun by then, so help never makes it slower. A helper is
a process of its own, which shares nothing with this one and ends with it, however that ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path

from ledger.errors import LedgerFileError, LedgerUnreadable
from ledger.verifying.findings import Tally
from ledger.verifying.sharing import Share, Verifiable, opened

ALONE_BELOW_EVENTS = 200_000
"""Fewer are looked at before others are ready, or not long after: that takes a second."""
AHEAD = 2
"""So many shares wait for each helper."""


async def check_all(url: str | Path, ledger: Verifiable, shares: list[Share], jobs: int) -> AsyncGenerator[Tally]:
    """What each share turns out to be, as it is known; by as many as `jobs` processes, of which this is one."""
    if jobs == 1 or len(shares) == 1 or sum(share.event_count for share in shares) < ALONE_BELOW_EVENTS:
        for share in shares:
            yield await ledger.check(share)
        return
    left = iter(shares)
    own: asyncio.Future[Tally | str] | None = None
    waiting: set[asyncio.Future[Tally | str]] = set()
    with _helpers(min(jobs, len(shares)) - 1) as helpers:
        try:
            while True:
                for share in left:
                    if own is None:
                        own = asyncio.ensure_future(_check_here(ledger, share))
                        waiting.add(own)
                    else:
                        waiting.add(helpers.begin(url, share))
                    if len(waiting) > AHEAD * (jobs - 1):
                        break
                if not waiting:
                    return
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                own = None if own in done else own
                for found in [future.result() for future in done]:
                    if isinstance(found, str):
                        raise LedgerUnreadable(ledger.place, found)
                    yield found
        except BrokenExecutor as error:
            raise LedgerUnreadable(ledger.place, "was not looked at: a process that did so has died") from error
        finally:
            if own is not None:
                own.cancel()


class _Helpers:
    """Processes that look at shares."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def begin(self, url: str | Path, share: Share) -> asyncio.Future[Tally | str]:
        """Let one of them look at a share, which may be what starts it."""
        with _interrupts_held_back():
            return asyncio.get_running_loop().run_in_executor(self._pool, _check_apart, str(url), share)


@contextlib.contextmanager
def _helpers(count: int) -> Iterator[_Helpers]:
    # Not forked: whoever asks may have threads, and connections that are its own.
    context = multiprocessing.get_context("spawn")
    # It starts a process as well, and lets interrupts through when it has: so before they are held back.
    resource_tracker.ensure_running()
    ear, mouth = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_begin, initargs=(ear,))
    try:
        yield _Helpers(pool)
    except BaseException:
        mouth.close()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@contextlib.contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """A process that is started meanwhile is not interrupted before it can say that it passes over interrupts."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(ear: Connection) -> None:
    """It is for the process that was asked to say that it was interrupted; then its helpers end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(ear,), daemon=True).start()


def _end_with(ear: Connection) -> None:
    """Whoever asked has left or died. What is done here has no other use, and leaves nothing half done."""
    ear.poll(None)
    os._exit(0)


async def _check_here(ledger: Verifiable, share: Share) -> Tally | str:
    return await ledger.check(share)


def _check_apart(url: str, share: Share) -> Tally | str:
    """The share's tally, or why it cannot be looked at, which errors would not survive the way between processes."""
    try:
        return asyncio.run(_check(url, share))
    except LedgerFileError as error:
        return error.problem


async def _check(url: str, share: Share) -> Tally:
    async with opened(url) as ledger:
        return await ledger.check(share)
