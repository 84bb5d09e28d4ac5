"""Processes to treat badly, and what a ledger must be like afterwards."""

from __future__ import annotations

import contextlib
import multiprocessing
import sqlite3
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, NamedTuple

from ledger.bytes import body_hash, genesis_link, next_link
from tests.faults import programs

# A server that has imported everything forks each of them, or importing would be most of what they do.
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.faults.programs", "alembic.command"])


class Program(NamedTuple):
    """A program that runs, and the pipe to it."""

    process: ForkServerProcess
    pipe: Connection


def start(program: Callable[..., Any], *args: object) -> Program:
    """The program in a process of its own, which can be killed without harm to anybody else."""
    ours, theirs = _processes.Pipe()
    process = _processes.Process(target=programs.run, args=(program, theirs, *args), daemon=True)
    process.start()
    theirs.close()
    return Program(process, ours)


def links_of(path: Path, run_id: str) -> list[bytes]:
    """The links of a run's events, recomputed from what is stored; every row is checked against it."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        _check_file(connection)
        return _recomputed(connection, f"r:{run_id}")


def links_of_all(path: Path) -> dict[str, list[bytes]]:
    """The same of every stream; nobody may be in the middle of a transaction."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        _check_file(connection)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        streams = connection.execute("SELECT stream_id FROM stream UNION SELECT stream_id FROM event").fetchall()
        links = {stream_id: _recomputed(connection, stream_id) for (stream_id,) in streams}
        connection.execute("ROLLBACK")
        return links


def _check_file(connection: sqlite3.Connection) -> None:
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    positions = [row[0] for row in connection.execute("SELECT pos FROM event ORDER BY pos")]
    assert positions == list(range(1, len(positions) + 1))


def _recomputed(connection: sqlite3.Connection, stream_id: str) -> list[bytes]:
    (ledger_id,) = connection.execute("SELECT value FROM ledger_meta WHERE key = 'ledger_id'").fetchone()
    link = genesis_link(ledger_id, stream_id)
    links: list[bytes] = []
    columns = "seq, recorded_us, body, body_hash, link"
    rows = connection.execute(f"SELECT {columns} FROM event WHERE stream_id = ? ORDER BY seq", (stream_id,))
    for seq, recorded_us, body, stored_hash, stored_link in rows:
        assert seq == len(links) + 1
        link = next_link(link, seq, recorded_us, body_hash(body))
        assert (stored_hash, stored_link) == (body_hash(body), link)
        links.append(link)
    head = connection.execute("SELECT head_seq, head_link FROM stream WHERE stream_id = ?", (stream_id,)).fetchone()
    assert head == ((len(links), links[-1]) if links else None)
    return links
