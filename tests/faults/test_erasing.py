"""`kill -9` in the middle of an erasure: afterwards the ledger is consistent, and the erasure can be finished (D19)."""

import random
import shutil
import signal
import sqlite3
import threading
import time

import pytest

from ledger import Ledger
from ledger.verifying import verify
from tests.contract.bytes_on_disk import found_in
from tests.contract.databases import Database
from tests.faults import programs
from tests.faults.processes import links_of, start
from tests.ledger.blank import blank_at
from tests.ledger.scripted import ScriptedRun

RUNS = 120
ROUNDS = 14
ROUNDS_THERE = 4


def words(run_id):
    return f"<<what {run_id} was told in clear words>>" * 40


async def record(url):
    """Runs of two sessions, in a ledger that is closed then."""
    async with await Ledger.open(url) as ledger:
        futures = []
        for number in range(RUNS):
            run = ScriptedRun(f"run-{number}", session_of(number), writer_id=f"w{number}")
            tool = run.attempt()
            appends = (run.start(), tool.start(words(run.run_id)), tool.succeed(), run.end())
            futures += [ledger.journal.submit(append) for append in appends]
        for future in futures:
            future.result()


def session_of(number):
    return "kept" if number % 10 == 0 else "erased"


@pytest.fixture
async def recorded(tmp_path):
    path = blank_at(tmp_path / "recorded.db")
    await record(path)
    return path


def erase_and_kill(path, after_s):
    """Start erasing, and kill it so many seconds later; what it said until then, and how long it took."""
    program = start(programs.erase, str(path), "erased")
    assert program.pipe.recv() == "ready"
    began_s = time.perf_counter()
    program.pipe.send("go")
    if after_s is not None:
        threading.Timer(after_s, program.process.kill).start()
    said = []
    try:
        while not said or said[-1] != "erased":
            said.append(program.pipe.recv())
    except (EOFError, OSError):
        pass
    took_s = time.perf_counter() - began_s
    program.process.join(30)
    assert program.process.exitcode == (0 if after_s is None else -signal.SIGKILL) or said[-1:] == ["erased"]
    program.pipe.close()
    return said, took_s


def found(path):
    data = b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*") if file.is_file())
    return [number for number in range(RUNS) if words(f"run-{number}").encode() in data]


async def look_and_finish(ledger):
    """What is erased says so, all else is there, and the erasure comes to its end; how many were half-way."""
    for run in range(RUNS):
        (tool,) = (await ledger.reader.trace(session_of(run), f"run-{run}")).tool_invocations
        if tool.input.state == "erased":
            assert (session_of(run), tool.input.data, tool.input.erasure is not None) == ("erased", None, True)
        else:
            assert tool.input.text == words(f"run-{run}")
    assert (await ledger.rebuild()).is_clean
    count, stage, problem = await ledger.finish_erasures()
    assert (stage, problem) in ((None, None), ("FILE", None))
    decided = await ledger.reader.system_events()
    if decided:
        assert [event.type for event in decided] == ["erasure.decided", "erasure.finished"]
        assert (await ledger.erase(session="erased")).content_count == 0
    else:
        assert (await ledger.erase(session="erased")).stage == "FILE"
    assert (await ledger.rebuild()).is_clean
    return count


async def test_an_erasure_killed_at_any_moment_leaves_a_consistent_ledger_and_is_finished_later(recorded, tmp_path):
    whole = shutil.copy(recorded, tmp_path / "whole.db")
    said, took_s = erase_and_kill(whole, None)
    assert said[-1] == "erased"
    assert found(whole) == list(range(0, RUNS, 10))
    moments = random.Random(5)
    half_way = 0
    for number in range(ROUNDS):
        path = shutil.copy(recorded, tmp_path / f"round-{number}.db")
        said, _ = erase_and_kill(path, moments.random() * took_s * 1.1)
        async with await Ledger.open(path) as ledger:
            half_way += await look_and_finish(ledger)
        assert found(path) == list(range(0, RUNS, 10))
        for run in range(0, RUNS, 7):
            links_of(path, f"run-{run}")
    assert half_way > 3


@pytest.fixture
async def recorded_there(postgres_server):
    """The same in a database, to copy."""
    name = postgres_server.create_database()
    await record(postgres_server.url(name))
    # What copies it is no restored dump.
    postgres_server.execute("UPDATE ledger_meta SET value = '' WHERE key = 'home'", database=name)
    yield name
    postgres_server.drop_database(name)


async def test_in_a_database_too_an_erasure_killed_at_any_moment_is_finished_later(recorded_there, postgres_server):
    moments, half_way, took_s = random.Random(5), 0, None
    for _ in range(ROUNDS_THERE):
        url = postgres_server.url(postgres_server.create_database(template=recorded_there))
        _, took = erase_and_kill(url, None if took_s is None else moments.random() * took_s)
        took_s = took_s or took
        async with await Ledger.open(url) as ledger:
            half_way += await look_and_finish(ledger)
        database = Database(url)
        assert found_in(database, *(words(f"run-{run}").encode() for run in range(RUNS))) == {
            words(f"run-{run}").encode() for run in range(0, RUNS, 10)
        }
        database.close()
        assert (await verify(url)).findings == ()
        postgres_server.drop_database(url.rpartition("/")[2])
    assert half_way > 0


async def test_an_erasure_killed_while_the_file_is_written_anew_loses_nothing(recorded, tmp_path):
    # The rows are gone already, so that all of the time is the cleaning's.
    connection = sqlite3.connect(recorded, isolation_level=None)
    connection.execute("CREATE TABLE ballast (data BLOB)")
    connection.execute("INSERT INTO ballast SELECT randomblob(1000000) FROM json_each('[1,2,3,4,5,6,7,8,9,10]')")
    connection.close()
    moments = random.Random(3)
    for number in range(6):
        path = shutil.copy(recorded, tmp_path / f"round-{number}.db")
        program = start(programs.erase, str(path), "erased")
        program.pipe.recv()
        program.pipe.send("go")
        while program.pipe.recv() != RUNS - RUNS // 10:
            pass
        threading.Timer(moments.random() * 0.15, program.process.kill).start()
        program.process.join(30)
        async with await Ledger.open(path) as ledger:
            assert (await ledger.finish_erasures())[1] in (None, "FILE")
            assert (await ledger.rebuild()).is_clean
            assert [event.type for event in await ledger.reader.system_events()][-1] == "erasure.finished"
        assert found(path) == list(range(0, RUNS, 10))
        links_of(path, "run-1")
