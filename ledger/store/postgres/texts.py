"""The search index of a ledger in a database: the words of each run, with an index of PostgreSQL's full text search."""

from __future__ import annotations

from typing import Any

import asyncpg

from harness.ids import run_stream
from ledger.append.deciding import Draft
from ledger.store import texts
from ledger.texts import INDEXED_STORED_BYTES, StoredText, indexed

BEGINNINGS = (
    f"SELECT digest, substr(data, 1, {INDEXED_STORED_BYTES}), encoding FROM content"  # noqa: S608 - a number of ours
    " WHERE stream_id = $1 AND digest = ANY($2::text[])"
)
TEXTS_OF_RUN = texts.texts_of("run.run_id = $1")
TEXTS_AFTER = texts.texts_of("run.run_id > $1 ORDER BY run.run_id LIMIT $2")
PUT = "INSERT INTO run_text (run_id, words) VALUES ($1, $2) ON CONFLICT (run_id) DO UPDATE SET words = excluded.words"
REMOVE = "DELETE FROM run_text WHERE run_id = $1"


async def words_named(connection: asyncpg.Connection[Any], draft: Draft) -> str | None:
    """The words of the run that the draft extends, if it names a text; what it does not bring is there already."""
    if not any(event.type in texts.NAMING for event in draft.events):
        return None
    ((run_id, run),) = draft.changes.runs.items()
    row = run.row
    digests = [digest for name in texts.NAMED if (digest := getattr(row, name)) is not None]
    found: dict[str, StoredText] = {one.digest: (one.data, one.encoding) for one in draft.contents if one.data}
    missing = [digest for digest in digests if digest not in found]
    if missing:
        rows = await connection.fetch(BEGINNINGS, run_stream(run_id), missing)
        found |= {digest: (data, encoding) for digest, data, encoding in rows}
    return indexed(found[digest] for digest in digests if digest in found) or None


async def index_run(connection: asyncpg.Connection[Any], run_id: str) -> None:
    """Make the index of the run what its contents say."""
    for row in await connection.fetch(TEXTS_OF_RUN, run_id):
        words = texts.words_of(row)
        if words and words != row[1]:
            await connection.execute(PUT, run_id, words)
        elif not words and row[1] is not None:
            await connection.execute(REMOVE, run_id)


async def mend(connection: asyncpg.Connection[Any]) -> int:
    """Make the index of all runs what their contents say; of how many it was not."""
    wrong_count, last = int((await connection.execute(texts.DELETE_STRAYS)).rpartition(" ")[2]), ""
    while rows := await connection.fetch(TEXTS_AFTER, last, texts.PAGE_RUNS):
        last = rows[-1][0]
        wrong = [row[0] for row in rows if texts.words_of(row) != (row[1] or "")]
        for run_id in wrong:
            async with connection.transaction():
                await connection.execute(LOCK_RUN, run_stream(run_id))
                await index_run(connection, run_id)
        wrong_count += len(wrong)
    return wrong_count


LOCK_RUN = "SELECT FROM stream WHERE stream_id = $1 FOR NO KEY UPDATE"
"""Whoever appends to the run waits for its turn."""
