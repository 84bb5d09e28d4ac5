"""Erasing in SQLite: which statements find, take and clean up what is to be erased."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from harness.clock import WallClock
from harness.events import ContentErased, ErasureFinished, ErasureStage
from harness.ids import run_stream, session_stream
from harness.journal import Submission
from ledger.erasing import BYTES_AT_ONCE, CONTENTS_AT_ONCE, RUNS_AT_ONCE, Order, Taken, run_id_of
from ledger.errors import ContentNotFound, RunNotFound, RunUnreadable, SessionNotFound
from ledger.prepared import prepare
from ledger.store.batch import Batch
from ledger.store.faults import unavailable
from ledger.store.probe import connect_to_read
from ledger.store.sqlite import SqliteStore
from ledger.unfolded import append, system_event

T = TypeVar("T")

TARGETS_AT_ONCE = 200

# Without `state`, which SQLite keeps behind the data: of a large content that means reading it whole.
_IS_LEFT = "(salt IS NOT NULL OR data IS NOT NULL)"
_STORED_BYTES = "iif(data IS NULL, 0, size_bytes)"
_RUNS = {
    "RUN": "SELECT stream_id FROM stream WHERE stream_id = 'r:' || :of_run_id",
    "SESSION": "SELECT stream_id FROM stream WHERE kind = 'run' AND session_id = :of_session_id",
    "DIGEST": f"SELECT stream_id FROM content WHERE digest = :digest AND {_IS_LEFT}",  # noqa: S608 - ours
    "DIGEST OF RUN": "SELECT stream_id FROM content WHERE digest = :digest AND stream_id = 'r:' || :of_run_id",
    "RETENTION": "SELECT 'r:' || run_id AS stream_id FROM diagnosis_run WHERE ended_us < :before_us",
}
"""The streams that an order is about."""
TARGETS = {
    about: f"SELECT stream_id FROM ({runs}) AS found WHERE stream_id > :after"  # noqa: S608 - ours
    f" AND EXISTS (SELECT 1 FROM content WHERE content.stream_id = found.stream_id AND {_IS_LEFT})"
    " ORDER BY stream_id LIMIT :limit"
    for about, runs in _RUNS.items()
}
COUNT = {
    about: f"SELECT count(DISTINCT stream_id), count(*), coalesce(sum({_STORED_BYTES}), 0) FROM content"  # noqa: S608
    f" WHERE stream_id IN ({runs}) AND {_IS_LEFT} AND digest = coalesce(:digest, digest)"
    for about, runs in _RUNS.items()
}
HAS_STREAM = "SELECT 1 FROM stream WHERE stream_id = ? AND session_id = ?"
HAS_CONTENT = "SELECT 1 FROM content WHERE stream_id = ? AND digest = ?"
HAS_DIGEST = "SELECT 1 FROM content WHERE digest = ? LIMIT 1"
TO_TAKE = (
    f"SELECT digest, {_STORED_BYTES}, length(data) FROM content WHERE stream_id = :stream_id AND {_IS_LEFT}"  # noqa: S608
    " AND digest = coalesce(:digest, digest) LIMIT :limit"
)
TAKE = (
    "SELECT digest, iif(state = 'stored', size_bytes, 0), length(data) FROM content"
    " WHERE stream_id = :stream_id AND state <> 'erased' AND digest = coalesce(:digest, digest) LIMIT :limit"
)
TAKE = (
    "UPDATE content SET data = NULL, salt = NULL, encoding = NULL, state = 'erased', erased_seq = ?"
    " WHERE stream_id = ? AND digest = ?"
)
_ORDER = "erasure_id, scope, of_session_id, of_run_id, digest, before_us, reason, actor"
INSERT_ERASURE = (
    f"INSERT INTO erasure ({_ORDER}, is_marked, run_count, content_count, size_bytes)"  # noqa: S608 - ours
    " VALUES (:erasure_id, :scope, :of_session_id, :of_run_id, :digest, :before_us, :reason, :actor, 0, 0, 0, 0)"
)
ADD_TO_RUN = (
    "INSERT INTO erased_run (erasure_id, stream_id, content_count, size_bytes) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (erasure_id, stream_id) DO UPDATE SET"
    " content_count = content_count + excluded.content_count, size_bytes = size_bytes + excluded.size_bytes"
)
SUM_UP = (
    "UPDATE erasure SET is_marked = 1, (run_count, content_count, size_bytes) = (SELECT count(*),"
    " coalesce(sum(content_count), 0), coalesce(sum(size_bytes), 0) FROM erased_run WHERE erasure_id = :erasure_id)"
    " WHERE erasure_id = :erasure_id AND is_marked = 0"
)
UNFINISHED = f"SELECT {_ORDER}, is_marked FROM erasure ORDER BY erasure_id"  # noqa: S608 - names of ours
RUNS_TO_TELL = "SELECT stream_id, content_count, size_bytes FROM erased_run WHERE erasure_id = ? LIMIT ?"
FORGET_RUN = "DELETE FROM erased_run WHERE erasure_id = ? AND stream_id = ?"
FIGURES = "SELECT run_count, content_count, size_bytes FROM erasure WHERE erasure_id = ?"
FORGET_ERASURE = "DELETE FROM erasure WHERE erasure_id = ?"

Runner = Callable[..., Awaitable[Any]]
"""Does a job, which looks at the named runs, in a write transaction."""
Caller = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Calls something in the writer's thread, outside any transaction."""


class SqliteErasing:
    """What `ledger.erasing` needs of a ledger in one file. What is looked for is looked for without any lock."""

    def __init__(self, store: SqliteStore, run: Runner, call: Caller, clock: WallClock) -> None:
        self._store = store
        self._run = run
        self._call = call
        self._clock = clock

    async def check(self, order: Order) -> None:
        await asyncio.to_thread(self._check, order)

    async def targets(self, order: Order, after: str) -> list[str]:
        values = _values(order) | {"after": after, "limit": TARGETS_AT_ONCE}
        return [row[0] for row in await asyncio.to_thread(self._read, TARGETS[_about(order)], values)]

    async def count(self, order: Order) -> tuple[int, int, int]:
        ((run_count, content_count, size_bytes),) = await asyncio.to_thread(
            self._read, COUNT[_about(order)], _values(order)
        )
        return run_count, content_count, size_bytes

    async def decide(self, order: Order) -> None:
        await self._run(partial(_decide, order, self._clock.now_us()))

    async def take(self, order: Order, stream_ids: Sequence[str]) -> Taken:
        job = partial(_take, order, stream_ids, self._clock.now_us())
        taken: Taken = await self._run(job, *map(run_id_of, stream_ids))
        return taken

    async def all_taken(self, order: Order) -> None:
        await self._run(lambda batch: batch.connection.execute(SUM_UP, _values(order)))

    async def unfinished(self) -> list[tuple[Order, bool]]:
        rows = await asyncio.to_thread(self._read, UNFINISHED, {})
        names = _ORDER.split(", ")
        return [(Order(**dict(zip(names, row[:-1], strict=True))), bool(row[-1])) for row in rows]

    async def clean_log(self) -> bool:
        is_clean: bool = await self._call(self._store.truncate_log)
        return is_clean

    async def size_bytes(self) -> int:
        return (await asyncio.to_thread(self._store.path.stat)).st_size

    async def rewrite(self) -> None:
        await self._call(self._store.rewrite_file)

    async def finish(self, order: Order) -> bool:
        rows = await asyncio.to_thread(self._read, RUNS_TO_TELL, (order.erasure_id, RUNS_AT_ONCE))
        job = partial(_finish, order, self._clock.now_us())
        is_more: bool = await self._run(job, *(run_id_of(row[0]) for row in rows))
        return is_more

    def _check(self, order: Order) -> None:
        session_id, run_id, digest = str(order.of_session_id), str(order.of_run_id), order.digest
        if order.of_run_id is not None:
            if not self._read(HAS_STREAM, (run_stream(run_id), session_id)):
                raise RunNotFound(session_id, run_id)
            if digest is not None and not self._read(HAS_CONTENT, (run_stream(run_id), digest)):
                raise ContentNotFound(digest)
        elif digest is not None and not self._read(HAS_DIGEST, (digest,)):
            raise ContentNotFound(digest)
        elif order.scope == "SESSION" and not self._read(HAS_STREAM, (session_stream(session_id), session_id)):
            raise SessionNotFound(session_id)

    def _read(self, statement: str, values: Any) -> list[tuple[Any, ...]]:
        try:
            with contextlib.closing(connect_to_read(self._store.path)) as ledger:
                return ledger.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise unavailable(error) from error


def _decide(order: Order, now_us: int, batch: Batch) -> None:
    model, fields = order.decision()
    append(batch, system_event(model, batch.setting.new_event_id(), now_us, **fields))
    batch.connection.execute(INSERT_ERASURE, _values(order))


def _take(order: Order, stream_ids: Sequence[str], now_us: int, batch: Batch) -> Taken:
    connection = batch.connection
    if connection.execute(FIGURES, (order.erasure_id,)).fetchone() is None:
        return Taken()  # Somebody else carried the order out, and finished it.
    content_count = size_bytes = stored_bytes = 0
    done: list[str] = []
    unreadable: list[str] = []
    for number, stream_id in enumerate(stream_ids):
        limit = CONTENTS_AT_ONCE - content_count
        if limit <= 0 or stored_bytes >= BYTES_AT_ONCE:
            return Taken(content_count, size_bytes, tuple(done), tuple(stream_ids[number:]), tuple(unreadable))
        values = {"stream_id": stream_id, "digest": order.digest, "limit": limit}
        rows = _up_to(BYTES_AT_ONCE, connection.execute(TO_TAKE, values))
        if not rows:
            continue
        of_run = (len(rows), sum(row[1] for row in rows))
        seq = _say(order, "ROWS", *of_run, stream_id, now_us, batch)
        if seq is None:
            unreadable.append(run_id_of(stream_id))
        connection.executemany(TAKE, [(seq, stream_id, row[0]) for row in rows])
        connection.execute(ADD_TO_RUN, (order.erasure_id, stream_id, *of_run))
        content_count, size_bytes = content_count + of_run[0], size_bytes + of_run[1]
        stored_bytes += sum(row[2] or 0 for row in rows)
        done.append(stream_id)
        if len(rows) == limit or stored_bytes >= BYTES_AT_ONCE:
            return Taken(content_count, size_bytes, tuple(done), tuple(stream_ids[number:]), tuple(unreadable))
    return Taken(content_count, size_bytes, tuple(done), (), tuple(unreadable))


def _up_to(bytes_max: int, found: Any) -> list[tuple[str, int, int | None]]:
    """As many rows as have so many bytes, and one more."""
    rows: list[tuple[str, int, int | None]] = []
    for row in found:
        rows.append(row)
        bytes_max -= row[2] or 0
        if bytes_max <= 0:
            break
    return rows


def _say(
    order: Order,
    stage: ErasureStage,
    content_count: int,
    size_bytes: int,
    stream_id: str,
    now_us: int,
    batch: Batch,
) -> int | None:
    """Say in the run what was taken of it; where, or None if it cannot be told, as nobody can read it."""
    run_id = run_id_of(stream_id)
    try:
        head = batch.head(run_id)
        assert head is not None, "a stream is never deleted"
        event = ContentErased(
            event_id=batch.setting.new_event_id(),
            stream_id=stream_id,
            session_id=head.session_id,
            run_id=run_id,
            occurred_us=now_us,
            **order.carried_out(stage, content_count, size_bytes),
        )
        return batch.append(prepare(Submission(head.session_id, run_id, (event,)))).last_seq
    except RunUnreadable:
        return None


def _finish(order: Order, now_us: int, batch: Batch) -> bool:
    connection, erasure_id = batch.connection, order.erasure_id
    for stream_id, content_count, size_bytes in connection.execute(RUNS_TO_TELL, (erasure_id, RUNS_AT_ONCE)).fetchall():
        _say(order, "FILE", content_count, size_bytes, stream_id, now_us, batch)
        connection.execute(FORGET_RUN, (erasure_id, stream_id))
    if connection.execute(RUNS_TO_TELL, (erasure_id, 1)).fetchone() is not None:
        return True
    figures = connection.execute(FIGURES, (erasure_id,)).fetchone()
    if figures is not None:
        fields = dict(zip(("run_count", "content_count", "size_bytes"), figures, strict=True))
        event_id = batch.setting.new_event_id()
        append(batch, system_event(ErasureFinished, event_id, now_us, erasure_id=erasure_id, stage="FILE", **fields))
        connection.execute(FORGET_ERASURE, (erasure_id,))
    return False


def _about(order: Order) -> str:
    return "DIGEST OF RUN" if order.scope == "DIGEST" and order.of_run_id is not None else order.scope


def _values(order: Order) -> dict[str, Any]:
    return {name: getattr(order, name) for name in _ORDER.split(", ")}
