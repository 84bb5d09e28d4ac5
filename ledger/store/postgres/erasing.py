"""Erasing in PostgreSQL: what is taken of a run goes with the event that tells it, in one transaction.

Clean are the tables: what is in archived logs, replicas and backups of the server is not reached (SPEC D19).
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import asyncpg

from harness.clock import WallClock
from ledger.append.deciding import Draft
from ledger.erasing.erasing import BYTES_AT_ONCE, CONTENTS_AT_ONCE, RUNS_AT_ONCE, Order, Taken, run_id_of
from ledger.erasing.telling import tell_decision, tell_end, tell_run
from ledger.errors import RunUnreadable
from ledger.loop_thread import LoopThread
from ledger.store import erasing_statements as sql
from ledger.store.postgres.appends import Appends
from ledger.store.postgres.faults import FAULTS, unavailable
from ledger.store.postgres.named import numbered
from ledger.store.postgres.place import PostgresPlace
from ledger.store.postgres.texts import index_run
from ledger.store.postgres.turns import Turns

Connection: TypeAlias = "asyncpg.Connection[Any]"

TAKE = (
    "UPDATE content SET data = NULL, salt = NULL, encoding = NULL, state = 'erased', erased_seq = $1"
    " WHERE stream_id = $2 AND digest = ANY($3::text[]) AND state <> 'erased'"
)
IS_OPEN = "SELECT TRUE FROM erasure WHERE erasure_id = $1 FOR KEY SHARE"
NEXT_XID = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
SEES_OLDER = (
    "SELECT pg_snapshot_xmin(pg_current_snapshot()) < :xid::text::xid8"
    " OR EXISTS (SELECT FROM pg_stat_activity WHERE coalesce(datname, current_database()) = current_database()"
    " AND pid <> pg_backend_pid() AND age(backend_xmin) > age(:xid::text::xid8::xid))"
    " OR EXISTS (SELECT FROM pg_replication_slots WHERE age(xmin) > age(:xid::text::xid8::xid))"
)
"""Whether rows as they were before that transaction cannot be removed yet: somebody sees them, or has written
before it and not ended, in whatever database and also prepared, or a replica may still ask for them."""
SIZE = "SELECT pg_total_relation_size('content') + pg_total_relation_size('run_text')"
REWRITE = "VACUUM (FULL) content, run_text"
PATIENT = {"statement_timeout": "0", "plan_cache_mode": "auto"}


class _Changed(Exception):
    """Somebody else took some of it meanwhile."""


class PostgresErasing:
    """A `ledger.erasing.erasing.ErasingStore`. Its connection lives in the ledger's thread, for one thing at a time."""

    def __init__(self, place: PostgresPlace, appends: Appends, thread: LoopThread, clock: WallClock) -> None:
        self._place = place
        self._appends = appends
        self._thread = thread
        self._clock = clock
        self._turns = Turns(place, thread)
        self._horizon: str | None = None

    async def check(self, order: Order) -> None:
        for statement, values, missing in sql.checks(order):
            if not await self._read(statement, values):
                raise missing

    async def targets(self, order: Order, after: str) -> list[str]:
        values = sql.values_of(order) | {"after": after, "limit": sql.TARGETS_AT_ONCE}
        return [row[0] for row in await self._read(sql.TARGETS[sql.about(order)], values)]

    async def count(self, order: Order) -> tuple[int, int, int]:
        (figures,) = await self._read(sql.COUNT[sql.about(order)], sql.values_of(order))
        run_count, content_count, size_bytes = figures
        return run_count, content_count, int(size_bytes)

    async def decide(self, order: Order) -> None:
        job = partial(tell_decision, order, self._clock.now_us())
        note = partial(_execute, sql.INSERT_ERASURE, sql.values_of(order))
        await self._turns.do(partial(self._append, job, beside=note))

    async def take(self, order: Order, stream_ids: Sequence[str]) -> Taken:
        taken = Taken()
        for number, stream_id in enumerate(stream_ids):
            limit = CONTENTS_AT_ONCE - taken.content_count
            if limit > 0:
                taken = await self._turns.do(partial(self._take, order, stream_id, limit, taken))
            if limit <= 0 or taken.rest:
                return replace(taken, rest=tuple(stream_ids[number:]))
        return taken

    async def all_taken(self, order: Order) -> None:
        self._horizon = None
        await self._turns.do(partial(self._change, sql.SUM_UP, sql.values_of(order)))

    async def unfinished(self) -> list[tuple[Order, bool]]:
        return [(sql.order_of(tuple(row)), bool(row[-1])) for row in await self._read(sql.UNFINISHED, {})]

    async def clean_log(self) -> bool:
        """Whether nobody sees any more what was erased, so that rewriting removes it."""
        if self._horizon is None:
            ((self._horizon,),) = await self._read(NEXT_XID, {})
        ((is_seen,),) = await self._read(SEES_OLDER, {"xid": self._horizon})
        return not is_seen

    async def size_bytes(self) -> int:
        ((size_bytes,),) = await self._read(SIZE, {})
        return int(size_bytes)

    async def rewrite(self) -> None:
        await self._thread.done(_rewrite(self._place))

    async def finish(self, order: Order) -> bool:
        return await self._turns.do(partial(self._finish, order))

    async def stop(self) -> None:
        """Let go of the connection."""
        await self._turns.stop()

    async def _take(self, order: Order, stream_id: str, limit: int, before: Taken) -> Taken:
        """What was taken `before`, and up to `limit` contents of the stream."""
        values = {"stream_id": stream_id, "digest": order.digest, "limit": limit}
        while rows := sql.up_to(BYTES_AT_ONCE, await self._fetch(sql.TO_TAKE, values)):
            if not await self._fetch(sql.FIGURES, sql.values_of(order)):
                break  # Somebody else carried the order out, and finished it.
            figures = (len(rows), sum(row[1] for row in rows))
            unreadable = before.unreadable
            try:
                if not await self._take_rows(order, stream_id, [row[0] for row in rows], figures):
                    unreadable = (*unreadable, run_id_of(stream_id))
            except _Changed:
                continue
            is_more = len(rows) == limit or sum(row[2] or 0 for row in rows) >= BYTES_AT_ONCE
            return Taken(
                before.content_count + figures[0],
                before.size_bytes + figures[1],
                (*before.stream_ids, stream_id),
                (stream_id,) if is_more else (),
                unreadable,
            )
        return before

    async def _take_rows(self, order: Order, stream_id: str, digests: list[str], figures: tuple[int, int]) -> bool:
        """Whether the run was told; it is not if nobody can read it."""
        seqs: list[int | None] = []

        def tell(draft: Draft) -> None:
            seqs.append(tell_run(order, "ROWS", figures, stream_id, self._clock.now_us(), draft))

        async def take(connection: Connection) -> None:
            is_open = await connection.fetchval(IS_OPEN, order.erasure_id)
            if not is_open or await connection.execute(TAKE, seqs[-1], stream_id, digests) != f"UPDATE {len(digests)}":
                raise _Changed
            await index_run(connection, run_id_of(stream_id))
            await _execute(sql.ADD_TO_RUN, sql.taken_of(order, stream_id, *figures), connection)

        try:
            await self._append(tell, run_id_of(stream_id), beside=take)
        except RunUnreadable:
            seqs.append(None)
            connection = await self._turns.connection()
            async with connection.transaction():
                await take(connection)
            return False
        return True

    async def _finish(self, order: Order) -> bool:
        values = sql.values_of(order)
        rows = await self._fetch(sql.RUNS_TO_TELL, values | {"limit": RUNS_AT_ONCE})
        for stream_id, content_count, size_bytes in rows:
            figures = (content_count, size_bytes)
            tell = partial(tell_run, order, "FILE", figures, stream_id, self._clock.now_us())
            of_run = values | {"stream_id": stream_id}
            try:
                with contextlib.suppress(_Changed):
                    await self._append(tell, run_id_of(stream_id), beside=partial(_forget, sql.FORGET_RUN, of_run))
            except RunUnreadable:
                await self._change(sql.FORGET_RUN, of_run)
        for run_count, content_count, size_bytes in () if rows else await self._fetch(sql.FIGURES, values):
            tell_all = partial(tell_end, order, (run_count, content_count, size_bytes), self._clock.now_us())
            with contextlib.suppress(_Changed):
                await self._append(tell_all, beside=partial(_forget, sql.FORGET_ERASURE, values))
        return bool(rows)

    async def _append(
        self, job: Callable[[Draft], Any], run_id: str | None = None, *, beside: Callable[[Connection], Awaitable[None]]
    ) -> None:
        await self._appends.decide(self._turns.link, job, run_id, beside=beside)

    async def _read(self, statement: str, values: dict[str, Any]) -> list[Any]:
        return await self._turns.do(partial(self._fetch, statement, values))

    async def _fetch(self, statement: str, values: dict[str, Any]) -> list[Any]:
        text, given = numbered(statement, values)
        return await (await self._turns.connection()).fetch(text, *given)

    async def _change(self, statement: str, values: dict[str, Any]) -> None:
        await _execute(statement, values, await self._turns.connection())


async def _rewrite(place: PostgresPlace) -> None:
    """Write the table anew, over a connection of its own: it may take long, and no answer comes meanwhile."""
    try:
        connection = await place.connect(PATIENT, answer_timeout_s=None)
        try:
            await connection.execute(REWRITE)
        finally:
            await connection.close()
    except FAULTS as error:
        raise unavailable(error) from error


async def _execute(statement: str, values: dict[str, Any], connection: Connection) -> None:
    text, given = numbered(statement, values)
    await connection.execute(text, *given)


async def _forget(statement: str, values: dict[str, Any], connection: Connection) -> None:
    """Delete that one row; if it is gone, somebody else has said what was to be said."""
    text, given = numbered(statement, values)
    if await connection.execute(text, *given) != "DELETE 1":
        raise _Changed
