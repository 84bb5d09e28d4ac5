"""The streams of a ledger in shares, which one process looks at one after the other, or several at once.

What a share comes to is a few sums and findings, so memory does not grow with the ledger.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

from ledger.errors import LedgerFileError, LedgerUnreadable, Place
from ledger.store.place import is_postgres, path_of
from ledger.verifying.findings import Finding, Tally

SHARE_STREAMS = 1_000
SHARE_EVENTS = 20_000
"""What one share holds, unless a single stream is longer."""
ALONE_BELOW_EVENTS = 400_000
"""Fewer are looked at by this process alone: it takes seconds until others are ready."""
AHEAD = 2
"""So many shares wait for each process."""


class Share(NamedTuple):
    """Some streams, by their ids."""

    after: str
    upto: str | None
    """The last of them; None where all that follow belong to it."""
    event_count: int
    """How many events there are, about."""


class Verifiable(Protocol):
    """A ledger that can be looked at. What is looked at of one stream is of one moment."""

    @property
    def ledger_id(self) -> str: ...

    @property
    def place(self) -> Place: ...

    async def shares(self) -> list[Share]:
        """All streams, divided."""

    async def check(self, share: Share) -> Tally:
        """What the streams of a share turn out to be."""

    async def check_run(self, session_id: str, run_id: str) -> Tally:
        """What one run turns out to be; `RunNotFound` if there is no such run in that session."""

    async def whole(self) -> tuple[Finding, ...]:
        """What is wrong with the ledger apart from its streams."""


def divide(streams: Iterable[tuple[str, int]]) -> list[Share]:
    """Streams with the number of their events, in the order of their ids, as shares; the last one is open."""
    shares: list[Share] = []
    after, last, stream_count, event_count = "", "", 0, 0
    for stream_id, count in streams:
        if stream_count and (stream_count >= SHARE_STREAMS or event_count + count > SHARE_EVENTS):
            shares.append(Share(after, last, event_count))
            after, stream_count, event_count = last, 0, 0
        last = stream_id
        stream_count += 1
        event_count += count
    return [*shares, Share(after, None, event_count)]


def opened(url: str | Path) -> AbstractAsyncContextManager[Verifiable]:
    """The ledger at that address, for reading; a `LedgerFileError` if there is none."""
    # An engine is imported only where it is used: its driver may not be installed.
    if is_postgres(url):
        from ledger.store.postgres.verifying import opened_postgres

        return opened_postgres(str(url))
    from ledger.store.verifying import opened_sqlite

    return opened_sqlite(path_of(url))


def cores() -> int:
    """How many processes can work at once here."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


async def check_all(url: str | Path, ledger: Verifiable, shares: list[Share], jobs: int) -> AsyncGenerator[Tally]:
    """What each share turns out to be, as it is known; by as many as `jobs` processes."""
    if jobs == 1 or len(shares) == 1 or sum(share.event_count for share in shares) < ALONE_BELOW_EVENTS:
        for share in shares:
            yield await ledger.check(share)
        return
    # Not forked: whoever asks may have threads, and connections that are its own.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(jobs, len(shares)), mp_context=context, initializer=_ignore_interrupts)
    try:
        async for found in _as_they_come(pool, str(url), iter(shares), jobs * AHEAD):
            if isinstance(found, str):
                raise LedgerUnreadable(ledger.place, found)
            yield found
    except BrokenExecutor as error:
        raise LedgerUnreadable(ledger.place, "was not looked at: a process that did so has died") from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


async def _as_they_come(
    pool: ProcessPoolExecutor, url: str, shares: Iterator[Share], at_once: int
) -> AsyncIterator[Tally | str]:
    loop = asyncio.get_running_loop()
    waiting: set[asyncio.Future[Tally | str]] = set()
    while True:
        for share in shares:
            waiting.add(loop.run_in_executor(pool, _check_apart, url, share))
            if len(waiting) >= at_once:
                break
        if not waiting:
            return
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for future in done:
            yield future.result()


def _check_apart(url: str, share: Share) -> Tally | str:
    """The share's tally, or why it cannot be looked at, which errors would not survive the way between processes."""
    try:
        return asyncio.run(_check(url, share))
    except LedgerFileError as error:
        return error.problem


async def _check(url: str, share: Share) -> Tally:
    async with opened(url) as ledger:
        return await ledger.check(share)


def _ignore_interrupts() -> None:
    """It is for the process that was asked to say that it was interrupted."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
