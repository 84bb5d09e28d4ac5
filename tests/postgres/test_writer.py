"""The writer of a database: runs side by side, each in its order, and nothing left open."""

import asyncio
import os
import subprocess
import sys
import threading

import asyncpg
import pytest

from harness.errors import LedgerUnavailable
from ledger import AppendConflict, ConstraintViolated, WriterLimits
from ledger.store.postgres import appends, writer
from tests.ledger.scripted import ScriptedRun
from tests.servers.postgres import Loop


@pytest.fixture
async def ledger(database):
    async with await database.open() as opened:
        yield opened


@pytest.fixture
def statements(monkeypatch):
    """How many events each statement wrote."""
    sizes = []
    write = appends.write

    async def counted(connection, draft, seen):
        sizes.append(len(draft.events))
        return await write(connection, draft, seen)

    monkeypatch.setattr(appends, "write", counted)
    return sizes


def held_up(journal):
    """Keeps the writer's thread busy until the returned event is set."""
    gate, busy = threading.Event(), threading.Event()
    journal.run(lambda _: (busy.set(), gate.wait(30)))
    assert busy.wait(30)
    return gate


def test_what_waits_for_one_run_goes_out_in_one_statement(ledger, statements):
    run = ScriptedRun()
    ledger.journal.submit(run.start()).result()
    gate = held_up(ledger.journal)
    futures = [ledger.journal.submit(run.transition(f"n{number}")) for number in range(20)]
    gate.set()
    assert [future.result().last_seq for future in futures] == list(range(2, 22))
    assert statements[1:] == [20]


async def test_a_statement_has_a_bounded_number_of_appends(database, statements):
    async with await database.open(limits=WriterLimits(batch_appends_max=7)) as ledger:
        run = ScriptedRun()
        ledger.journal.submit(run.start()).result()
        gate = held_up(ledger.journal)
        futures = [ledger.journal.submit(run.transition(f"n{number}")) for number in range(20)]
        gate.set()
        [future.result() for future in futures]
    assert statements[1:] == [7, 7, 6]


def test_an_end_that_no_work_waits_for_shares_the_statement_of_the_next_start(ledger, statements):  # D12
    run = ScriptedRun()
    ledger.journal.submit(run.start()).result()
    for _ in range(5):
        tool = run.attempt()
        ledger.journal.submit(tool.start()).result()
        ledger.journal.submit(tool.succeed()._replace(is_awaited=False))
    ledger.journal.submit(run.end()).result()
    assert statements == [2, 2, 3, 3, 3, 3, 2]


def test_an_end_that_nothing_follows_is_written_after_a_moment(ledger):
    run = ScriptedRun()
    ledger.journal.submit(run.start()).result()
    assert ledger.journal.submit(run.transition("x")._replace(is_awaited=False)).result(30).last_seq == 2


def test_a_run_that_waits_for_a_lock_holds_no_other_up(ledger, plain):
    slow, fast = ScriptedRun("run-1"), ScriptedRun("run-2")
    for run in (slow, fast):
        ledger.journal.submit(run.start()).result()
    outsider = plain()
    outsider.execute("BEGIN")
    outsider.execute("SELECT 1 FROM stream WHERE run_id = 'run-1' FOR UPDATE")
    waiting = ledger.journal.submit(slow.transition("planner"))
    for number in range(20):
        ledger.journal.submit(fast.transition(f"n{number}")).result(30)
    assert not waiting.done()
    outsider.execute("COMMIT")
    assert waiting.result(30).last_seq == 2


async def test_more_runs_than_there_are_connections_all_go_on(ledger, plain):
    runs = [ScriptedRun(f"run-{number}") for number in range(10 * writer.CONNECTIONS_MAX)]

    async def work(run):
        for submission in run.whole():
            await asyncio.wrap_future(ledger.journal.submit(submission))

    await asyncio.gather(*map(work, runs))
    assert (await ledger.rebuild()).is_clean
    connections = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'WITH head%'"
    assert plain().execute(connections).fetchone()[0] <= writer.CONNECTIONS_MAX


async def test_of_twenty_writers_on_four_connections_that_expect_the_same_position_one_wins(database, ledger):  # E5
    ledger.journal.submit(ScriptedRun().start()).result()
    others = [await database.open() for _ in range(3)]
    barrier, futures = threading.Barrier(20), []

    def append(number):
        submission = ScriptedRun(writer_id=f"writer-{number}").request_cancellation()
        journal = [ledger, *others][number % 4].journal
        barrier.wait()
        futures.append(journal.submit(submission, seq_expected=1))

    threads = [threading.Thread(target=append, args=(number,)) for number in range(20)]  # CASES 36
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    conflicts = [error for future in futures if isinstance(error := future.exception(30), AppendConflict)]
    assert len(conflicts) == 19
    assert {(conflict.seq_expected, conflict.seq_found) for conflict in conflicts} == {(1, 2)}
    assert len(await ledger.reader.events("session-1", "run-1")) == 2
    for other in others:
        await other.close()


async def test_two_ledgers_that_take_turns_on_one_run_both_know_where_it_stands(database, ledger):
    other = await database.open()
    run, guest = ScriptedRun(), ScriptedRun(writer_id="w2")
    ledger.journal.submit(run.start()).result()
    for round_no in range(10):
        tool = run.attempt()
        assert ledger.journal.submit(tool.start()).result().last_seq == 4 * round_no + 3
        assert other.journal.submit(guest.request_cancellation()).result().last_seq == 4 * round_no + 4
        assert ledger.journal.submit(tool.succeed()).result().last_seq == 4 * round_no + 5
    await other.close()
    assert (await ledger.rebuild()).is_clean


async def test_a_statement_commits_durably_whatever_the_database_was_set_to(database, plain):  # E3
    plain().execute(f"ALTER DATABASE {database.url.rpartition('/')[2]} SET synchronous_commit = off")
    seen = []
    async with await database.open() as ledger:
        write = appends.write

        async def asked(connection, draft, of):
            seen.append(await connection.fetchval("SHOW synchronous_commit"))
            return await write(connection, draft, of)

        appends.write = asked
        try:
            ledger.journal.submit(ScriptedRun().start()).result()
        finally:
            appends.write = write
    assert seen == ["on"]


async def test_after_closing_no_connection_is_left_and_everything_fails(database, plain):
    outsider = plain()
    ledger = await database.open()
    journal = ledger.journal
    run = ScriptedRun()
    futures = [
        journal.submit(submission) for submission in (run.start(), *(run.transition(f"n{n}") for n in range(50)))
    ]
    await ledger.reader.recent_runs()
    await ledger.close()
    assert all(future.exception() is None for future in futures)
    for future in (journal.request_permit(1.0), journal.submit(run.transition("x")), journal.run(lambda _: 1)):
        assert isinstance(future.exception(30), LedgerUnavailable)
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    assert await gone(outsider, others)
    assert "ledger-postgres" not in {thread.name for thread in threading.enumerate()}


async def gone(outsider, count):
    """Whether the server comes to see that nobody is there any more."""
    for _ in range(200):
        if outsider.execute(count).fetchone() == (0,):
            return True
        await asyncio.sleep(0.02)
    return False


async def test_whoever_gives_up_waiting_leaves_no_connection_and_no_transaction(ledger, plain):  # CASES 37
    run = ScriptedRun()
    ledger.journal.submit(run.start()).result()
    for number in range(40):
        future = ledger.journal.submit(run.transition(f"n{number}"))
        task = asyncio.ensure_future(asyncio.wrap_future(future))
        reading = asyncio.ensure_future(ledger.reader.trace("session-1", "run-1"))
        telling = asyncio.ensure_future(ledger.record_feedback("session-1", "run-1", useful=True))
        await asyncio.sleep(0.001 * (number % 5))
        for one in (task, reading, telling):
            one.cancel()
        await asyncio.gather(task, reading, telling, return_exceptions=True)
        assert future.exception(30) is None
    assert ledger.journal.submit(run.transition("last")).exception(30) is None
    open_transactions = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'"
    )
    assert await gone(plain(), open_transactions)
    assert (await ledger.rebuild()).is_clean


def test_what_the_database_refuses_is_our_error_with_the_rule_it_broke(ledger, plain):
    outsider = plain()
    outsider.script(
        "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION USING ERRCODE = '23000', MESSAGE = 'no: not this one'; END $$;"
        " CREATE TRIGGER no BEFORE INSERT ON event FOR EACH ROW WHEN (NEW.run_id = 'run-1') EXECUTE FUNCTION no()"
    )
    error = ledger.journal.submit(ScriptedRun().start()).exception()
    assert isinstance(error, ConstraintViolated)
    assert (error.rule, error.detail) == ("no", "not this one")
    assert outsider.execute("SELECT count(*) FROM stream").fetchone() == (0,)


async def test_a_forked_child_can_do_nothing_with_the_ledger_and_harms_it_in_nothing(ledger):
    run = ScriptedRun()
    ledger.journal.submit(run.start()).result()

    def fork_and_wait():
        child = os.fork()
        if child != 0:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        futures = (ledger.journal.submit(run.transition("planner")), ledger.journal.request_permit(1.0))
        refused = all("forked" in str(future.exception(5)) for future in futures)
        ledger._engine.close()
        os._exit(0 if refused else 3)

    assert await asyncio.to_thread(fork_and_wait) == 0
    for number in range(10):
        assert ledger.journal.submit(run.transition(f"n{number}")).result(30).first_seq == number + 2


LEAVING = """
import asyncio, sys
from ledger import Ledger
from tests.ledger.scripted import ScriptedRun

async def leave(url, how):
    ledger = await Ledger.open(url)
    await ledger.reader.recent_runs()
    run = ScriptedRun()
    for submission in (run.start(), *(run.transition(f"n{n}") for n in range(200))):
        ledger.journal.submit(submission)
    if how == "raise":
        raise RuntimeError("on purpose")

asyncio.run(leave(*sys.argv[1:]))
"""


@pytest.mark.parametrize(("how", "code"), [("return", 0), ("raise", 1)])
def test_a_process_that_leaves_its_ledger_open_ends_and_has_written_all(database, plain, how, code):  # CASES 38
    done = subprocess.run([sys.executable, "-c", LEAVING, database.url, how], capture_output=True, timeout=150)
    assert done.returncode == code, done.stderr.decode()
    assert plain().execute("SELECT count(*) FROM event WHERE run_id = 'run-1'").fetchone() == (201,)


async def test_a_ledger_can_be_used_from_any_thread_and_loop(ledger):
    run = ScriptedRun()
    ledger.journal.submit(run.start()).result()
    other = Loop()

    async def submit():
        return await asyncio.wrap_future(ledger.journal.submit(run.transition("planner")))

    try:
        assert (await asyncio.to_thread(other.run, submit())).last_seq == 2
    finally:
        other.close()


async def test_an_idle_ledger_holds_no_transaction_open(ledger, database):
    ledger.journal.submit(ScriptedRun().start()).result()
    await ledger.reader.recent_runs()
    connection = await asyncpg.connect(database.url)
    states = await connection.fetch(
        "SELECT state FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    await connection.close()
    assert {row["state"] for row in states} == {"idle"}
