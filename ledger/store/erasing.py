"""Erasing in SQLite: which statements find, take and clean up what is to be erased."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from harness.clock import WallClock
from harness.events import ErasureStage
from ledger.erasing.erasing import BYTES_AT_ONCE, CONTENTS_AT_ONCE, RUNS_AT_ONCE, Order, Taken, run_id_of
from ledger.erasing.telling import tell_decision, tell_end, tell_run
from ledger.errors import RunUnreadable
from ledger.store import erasing_statements as sql
from ledger.store.batch import Batch
from ledger.store.faults import unavailable
from ledger.store.probe import connect_to_read
from ledger.store.sqlite import SqliteStore
from ledger.store.texts import index_runs

Runner = Callable[..., Awaitable[Any]]
"""Does a job, which looks at the named runs, in a write transaction."""
Caller = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Calls something in the writer's thread, outside any transaction."""


class SqliteErasing:
    """What `ledger.erasing.erasing` needs of a ledger in one file. Whatever is looked for takes no lock."""

    def __init__(self, store: SqliteStore, run: Runner, call: Caller, clock: WallClock) -> None:
        self._store = store
        self._run = run
        self._call = call
        self._clock = clock

    async def check(self, order: Order) -> None:
        await asyncio.to_thread(self._check, order)

    async def targets(self, order: Order, after: str) -> list[str]:
        values = sql.values_of(order) | {"after": after, "limit": sql.TARGETS_AT_ONCE}
        return [row[0] for row in await asyncio.to_thread(self._read, sql.TARGETS[sql.about(order)], values)]

    async def count(self, order: Order) -> tuple[int, int, int]:
        ((run_count, content_count, size_bytes),) = await asyncio.to_thread(
            self._read, sql.COUNT[sql.about(order)], sql.values_of(order)
        )
        return run_count, content_count, size_bytes

    async def decide(self, order: Order) -> None:
        await self._run(partial(_decide, order, self._clock.now_us()))

    async def take(self, order: Order, stream_ids: Sequence[str]) -> Taken:
        job = partial(_take, order, stream_ids, self._clock.now_us())
        taken: Taken = await self._run(job, *map(run_id_of, stream_ids))
        return taken

    async def all_taken(self, order: Order) -> None:
        await self._run(lambda batch: batch.connection.execute(sql.SUM_UP, sql.values_of(order)))

    async def unfinished(self) -> list[tuple[Order, bool]]:
        rows = await asyncio.to_thread(self._read, sql.UNFINISHED, {})
        return [(sql.order_of(row), bool(row[-1])) for row in rows]

    async def clean_log(self) -> bool:
        is_clean: bool = await self._call(self._store.truncate_log)
        return is_clean

    async def size_bytes(self) -> int:
        return (await asyncio.to_thread(self._store.path.stat)).st_size

    async def rewrite(self) -> None:
        await self._call(self._store.rewrite_file)

    async def finish(self, order: Order) -> bool:
        rows = await asyncio.to_thread(self._read, sql.RUNS_TO_TELL, sql.values_of(order) | {"limit": RUNS_AT_ONCE})
        job = partial(_finish, order, self._clock.now_us())
        is_more: bool = await self._run(job, *(run_id_of(row[0]) for row in rows))
        return is_more

    def _check(self, order: Order) -> None:
        for statement, values, missing in sql.checks(order):
            if not self._read(statement, values):
                raise missing

    def _read(self, statement: str, values: Any) -> list[tuple[Any, ...]]:
        try:
            with contextlib.closing(connect_to_read(self._store.path)) as ledger:
                return ledger.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise unavailable(error) from error


def _decide(order: Order, now_us: int, batch: Batch) -> None:
    tell_decision(order, now_us, batch)
    batch.connection.execute(sql.INSERT_ERASURE, sql.values_of(order))


def _take(order: Order, stream_ids: Sequence[str], now_us: int, batch: Batch) -> Taken:
    connection = batch.connection
    if connection.execute(sql.FIGURES, sql.values_of(order)).fetchone() is None:
        return Taken()  # Somebody else carried the order out, and finished it.
    content_count = size_bytes = stored_bytes = 0
    done: list[str] = []
    unreadable: list[str] = []
    for number, stream_id in enumerate(stream_ids):
        limit = CONTENTS_AT_ONCE - content_count
        if limit <= 0 or stored_bytes >= BYTES_AT_ONCE:
            return Taken(content_count, size_bytes, tuple(done), tuple(stream_ids[number:]), tuple(unreadable))
        values = {"stream_id": stream_id, "digest": order.digest, "limit": limit}
        rows = sql.up_to(BYTES_AT_ONCE, connection.execute(sql.TO_TAKE, values))
        if not rows:
            continue
        of_run = (len(rows), sum(row[1] for row in rows))
        seq = _tell(order, "ROWS", of_run, stream_id, now_us, batch)
        if seq is None:
            unreadable.append(run_id_of(stream_id))
        of_stream = {"seq": seq, "stream_id": stream_id}
        connection.executemany(sql.TAKE, [of_stream | {"digest": row[0]} for row in rows])
        index_runs(connection, (run_id_of(stream_id),))
        connection.execute(sql.ADD_TO_RUN, sql.taken_of(order, stream_id, *of_run))
        content_count, size_bytes = content_count + of_run[0], size_bytes + of_run[1]
        stored_bytes += sum(row[2] or 0 for row in rows)
        done.append(stream_id)
        if len(rows) == limit or stored_bytes >= BYTES_AT_ONCE:
            return Taken(content_count, size_bytes, tuple(done), tuple(stream_ids[number:]), tuple(unreadable))
    return Taken(content_count, size_bytes, tuple(done), (), tuple(unreadable))


def _tell(
    order: Order, stage: ErasureStage, figures: tuple[int, int], stream_id: str, now_us: int, batch: Batch
) -> int | None:
    """Where the run was told; None if it cannot be, as nobody can read it."""
    try:
        return tell_run(order, stage, figures, stream_id, now_us, batch)
    except RunUnreadable:
        return None


def _finish(order: Order, now_us: int, batch: Batch) -> bool:
    connection, values = batch.connection, sql.values_of(order)
    for stream_id, *of_run in connection.execute(sql.RUNS_TO_TELL, values | {"limit": RUNS_AT_ONCE}).fetchall():
        _tell(order, "FILE", (of_run[0], of_run[1]), stream_id, now_us, batch)
        connection.execute(sql.FORGET_RUN, values | {"stream_id": stream_id})
    if connection.execute(sql.RUNS_TO_TELL, values | {"limit": 1}).fetchone() is not None:
        return True
    figures = connection.execute(sql.FIGURES, values).fetchone()
    if figures is not None:
        tell_end(order, figures, now_us, batch)
        connection.execute(sql.FORGET_ERASURE, values)
    return False
