"""The search index of an SQLite ledger: what the contents say that are there, and nothing that was erased.

`run_text` has the words of each run, and `run_text_index` in which runs each word is. Whoever changes the one changes
the other, as a trigger may not where schemas are not trusted.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from harness.ids import run_stream
from ledger.store.probe import connect_to_read
from ledger.texts import INDEXED_STORED_BYTES, indexed

NAMING = frozenset({"run.started", "answer.recorded", "run.terminated"})
"""Types of events that may name a text which is searched."""
NAMED = ("query_digest", "answer_digest", "error_digest")
"""Columns of `diagnosis_run` that name those, in the order in which they are searched."""


def texts_of(key: str) -> str:
    """The statement that reads the beginnings of the texts of the runs for which `key` holds, by run."""
    columns = ", ".join(f"substr({name}.data, 1, {INDEXED_STORED_BYTES}), {name}.encoding" for name in NAMED)
    contents = " ".join(
        f"LEFT JOIN content AS {name} ON {name}.stream_id = '{run_stream('')}' || run.run_id"
        f" AND {name}.digest = run.{name}"
        for name in NAMED
    )
    return (
        f"SELECT run.run_id, run_text.words, {columns} FROM diagnosis_run AS run {contents}"  # noqa: S608 - names of ours
        f" LEFT JOIN run_text ON run_text.run_id = run.run_id WHERE {key}"
    )


TEXTS_OF_RUN = texts_of("run.run_id = ?")
TEXTS_AFTER = texts_of("run.run_id > ? ORDER BY run.run_id LIMIT ?")
PUT = "INSERT INTO run_text (run_id, words) VALUES (?, ?) ON CONFLICT (run_id) DO UPDATE SET words = excluded.words"
REMOVE = "DELETE FROM run_text WHERE run_id = ?"
ADD_TO_INDEX = "INSERT INTO run_text_index (rowid, words) SELECT doc, words FROM run_text WHERE run_id = ?"
TAKE_FROM_INDEX = ADD_TO_INDEX.replace("(rowid, ", "(run_text_index, rowid, ").replace("doc, ", "'delete', doc, ")
INDEX_ALL = "INSERT INTO run_text_index (run_text_index) VALUES ('rebuild')"
STRAYS = "FROM run_text WHERE NOT EXISTS (SELECT 1 FROM diagnosis_run WHERE diagnosis_run.run_id = run_text.run_id)"
COUNT_STRAYS, DELETE_STRAYS = f"SELECT count(*) {STRAYS}", f"DELETE {STRAYS}"
MERGE = "INSERT INTO run_text_index (run_text_index) VALUES ('optimize')"
"""Leaves no word in the index that no run has any more."""
PAGE_RUNS = 100


def index_runs(connection: sqlite3.Connection, run_ids: Iterable[str]) -> None:
    """Make the index of these runs what their contents say."""
    for run_id in run_ids:
        for row in connection.execute(TEXTS_OF_RUN, (run_id,)).fetchall():
            words = words_of(row)
            if words == (row[1] or ""):
                continue
            if row[1] is not None:
                connection.execute(TAKE_FROM_INDEX, (run_id,))
            if words:
                connection.execute(PUT, (run_id, words))
                connection.execute(ADD_TO_INDEX, (run_id,))
            else:
                connection.execute(REMOVE, (run_id,))


def index_all(connection: sqlite3.Connection) -> None:
    """The same of all runs."""
    last = ""
    while rows := connection.execute(TEXTS_AFTER, (last, PAGE_RUNS)).fetchall():
        last = rows[-1][0]
        index_runs(connection, (row[0] for row in rows))


def words_of(row: Sequence[Any]) -> str:
    """What a row of `texts_of` should have as its words."""
    contents = row[2:]
    return indexed(zip(contents[::2], contents[1::2], strict=True))


def find_wrong(path: Path) -> tuple[list[str], int]:
    """Runs of which the index says something else than their contents, and how many it has that are none."""
    with contextlib.closing(connect_to_read(path)) as ledger:
        wrong, last = [], ""
        while rows := ledger.execute(TEXTS_AFTER, (last, PAGE_RUNS)).fetchall():
            last = rows[-1][0]
            wrong += [row[0] for row in rows if words_of(row) != (row[1] or "")]
        return wrong, ledger.execute(COUNT_STRAYS).fetchone()[0]


def mend(connection: sqlite3.Connection, wrong: Iterable[str]) -> None:
    """Make the index of these runs right, and that of words all anew, since somebody has changed it."""
    connection.execute(DELETE_STRAYS)
    index_runs(connection, wrong)
    connection.execute(INDEX_ALL)
