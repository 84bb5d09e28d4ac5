"""The log beside the file does not grow for ever, whoever reads meanwhile."""

import logging
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from ledger import Ledger
from ledger.store import sqlite
from tests.ledger.scripted import ScriptedRun

EVENTS = 50_000


@pytest.fixture
def small_bounds(monkeypatch):
    monkeypatch.setattr(sqlite, "WAL_TRUNCATE_BYTES", 1024 * 1024)
    monkeypatch.setattr(sqlite, "WAL_WARN_BYTES", 8 * 1024 * 1024)
    monkeypatch.setattr(sqlite, "CHECKPOINT_COMMITS", 20)
    monkeypatch.setattr(sqlite, "CHECKPOINT_BYTES", 256 * 1024)


def wal_bytes(path):
    return Path(f"{path}-wal").stat().st_size


def in_mid_read(path):
    """A connection that has begun to read, and does not go on."""
    reader = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM event").fetchone()
    return reader


def append(ledger, events, number=0):
    run = ScriptedRun(f"run-{number}", writer_id=f"w{number}")
    last = ledger.journal.submit(run.start())
    for _ in range(events // 20):
        last = ledger.journal.submit(run.submission(*(run.transition("n").events[0] for _ in range(20))))
    assert last.result().last_seq == events + 1


async def test_a_reader_left_in_mid_read_keeps_the_log_which_is_told_and_cut_as_soon_as_it_ends(
    path, small_bounds, caplog
):
    async with await Ledger.open(path) as ledger:
        ledger.journal.submit(ScriptedRun("first", writer_id="w-first").start()).result()
        reader = in_mid_read(path)
        append(ledger, EVENTS)
        grown = wal_bytes(path)
        assert grown > sqlite.WAL_WARN_BYTES
        (told,) = [record for record in caplog.records if "a reader that does not end keeps it" in record.message]
        assert told.levelno == logging.WARNING
        assert reader.execute("SELECT count(*) FROM event").fetchone() == (2,)
        reader.close()
        until_s = time.monotonic() + 10
        while wal_bytes(path) > sqlite.WAL_TRUNCATE_BYTES and time.monotonic() < until_s:
            time.sleep(0.05)
        assert wal_bytes(path) <= sqlite.WAL_TRUNCATE_BYTES


async def test_readers_that_come_and_go_do_not_let_the_log_grow(path, small_bounds):
    stop, largest = threading.Event(), 0

    def read():
        # One has always begun before the other ends.
        readers = [in_mid_read(path), in_mid_read(path)]
        while not stop.is_set():
            readers.append(in_mid_read(path))
            readers.pop(0).close()
            stop.wait(0.005)
        for reader in readers:
            reader.close()

    async with await Ledger.open(path) as ledger:
        reading = threading.Thread(target=read)
        reading.start()
        for number in range(20):
            append(ledger, 1_000, number)
            largest = max(largest, wal_bytes(path))
        stop.set()
        reading.join()
    assert largest < 8 * sqlite.WAL_TRUNCATE_BYTES
