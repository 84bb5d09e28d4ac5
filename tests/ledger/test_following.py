"""Following the log: every event once, in one order, soon, and whatever becomes of those who follow (SPEC E8)."""

import asyncio
import time

import pytest

from ledger import AheadOfLog, Ledger, LedgerReader, LedgerUnreadable
from ledger.following import IDLE_S, PAGE_EVENTS, RECENT_EVENTS
from ledger.store.reads import SqliteReads
from tests.faults import programs
from tests.faults.processes import start
from tests.ledger.scripted import ScriptedRun
from tests.ledger.test_reader import explain

SOON_S = 0.1
"""Between the acknowledgement of an event and its being seen."""


@pytest.fixture
def run():
    return ScriptedRun()


async def record(ledger, submission):
    return await asyncio.wrap_future(ledger.journal.submit(submission))


async def record_many(ledger, run, count):
    futures = [ledger.journal.submit(run.transition(f"n{number}")) for number in range(count)]
    await asyncio.gather(*map(asyncio.wrap_future, futures))


async def take(follower, count):
    taken = []
    async with asyncio.timeout(20):
        while len(taken) < count:
            taken.append(await anext(follower))
    return taken


async def all_wait(ledger, count):
    async with asyncio.timeout(20):
        while ledger.reader._following.waiting_count < count:
            await asyncio.sleep(0.01)


def places(taken):
    return [place for place, _ in taken]


def of_log(plain):
    return plain().execute("SELECT pos - 1, event_id FROM event ORDER BY pos").fetchall()


async def test_a_follower_sees_every_event_once_in_the_order_of_the_log(ledger, run, plain):  # E8
    for submission in run.whole():
        await record(ledger, submission)
    follower = ledger.reader.follow()
    log = of_log(plain)
    assert [(place, event.event_id) for place, event in await take(follower, len(log))] == log
    assert follower.position == len(log) - 1 == await ledger.reader.last_leaf()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await anext(follower)


async def test_a_follower_goes_on_from_any_place(ledger, run, plain):  # E8
    for submission in run.whole():
        await record(ledger, submission)
    log = of_log(plain)
    for after in range(len(log) - 1):
        taken = await take(ledger.reader.follow(after), len(log) - after - 1)
        assert [(place, event.event_id) for place, event in taken] == log[after + 1 :]


async def test_what_is_acknowledged_is_seen_soon(ledger, run):  # E8
    await record(ledger, run.start())
    follower = ledger.reader.follow(await ledger.reader.last_leaf())
    waits = []
    for number in range(20):
        seen = asyncio.ensure_future(anext(follower))
        await asyncio.sleep(0)
        recorded = await record(ledger, run.transition(f"n{number}"))
        began_s = time.perf_counter()
        assert (await seen)[1].seq == recorded.last_seq
        waits.append(time.perf_counter() - began_s)
    assert sorted(waits)[len(waits) // 2] < SOON_S


async def test_what_another_process_writes_is_seen_soon(ledger, path):  # E8
    program = start(programs.tell_times, str(path), 20)
    assert program.pipe.recv() == "ready"
    async with await LedgerReader.open(path) as reader:
        follower = reader.follow(await reader.last_leaf())
        program.pipe.send("go")
        seen = {}
        async with asyncio.timeout(20):
            while len(seen) < 20:
                _, event = await anext(follower)
                if event.type == "graph.transitioned":
                    seen[event.seq] = time.monotonic()
    acknowledged = program.pipe.recv()
    waits = sorted(seen[seq] - acknowledged_s for seq, acknowledged_s in acknowledged.items())
    assert waits[len(waits) // 2] < SOON_S
    program.process.join()


@pytest.mark.parametrize("burst", [10, PAGE_EVENTS + 7, RECENT_EVENTS * 2])
async def test_a_burst_reaches_those_who_keep_up_and_those_who_do_not(ledger, run, burst):  # E8
    await record(ledger, run.start())
    after = await ledger.reader.last_leaf()
    quick, slow = ledger.reader.follow(after), ledger.reader.follow(after)
    first = asyncio.ensure_future(anext(quick))
    await record_many(ledger, run, burst)
    taken = [await first, *await take(quick, burst - 1)]
    assert places(taken) == list(range(after + 1, after + 1 + burst))
    assert places(await take(slow, burst)) == places(taken)


async def test_two_hundred_followers_share_one_watch_and_each_sees_everything(ledger, run):  # E8
    await record(ledger, run.start())
    after = await ledger.reader.last_leaf()
    all_taken = [asyncio.ensure_future(take(ledger.reader.follow(after), 300)) for _ in range(200)]
    await all_wait(ledger, 200)
    assert len([task for task in asyncio.all_tasks() if "Following._watch" in repr(task.get_coro())]) == 1
    await record_many(ledger, run, 300)
    expected = list(range(after + 1, after + 301))
    for taken in await asyncio.gather(*all_taken):
        assert places(taken) == expected


@pytest.mark.parametrize(
    ("wanted", "condition"),
    [({"run": ("session-1", "run-1")}, "run_id = 'run-1'"), ({"session": "session-1"}, "session_id = 'session-1'")],
)
async def test_a_follower_of_a_run_or_a_session_sees_only_theirs(ledger, plain, wanted, condition):  # E8, R4
    runs = [ScriptedRun(f"run-{number}", f"session-{number % 2}", writer_id=f"w{number}") for number in range(4)]
    for submissions in zip(*(run.whole() for run in runs), strict=True):
        for submission in submissions:
            await record(ledger, submission)
    rows = plain().execute(f"SELECT pos - 1, event_id FROM event WHERE {condition} ORDER BY pos").fetchall()
    follower = ledger.reader.follow(**wanted)
    assert [(place, event.event_id) for place, event in await take(follower, len(rows))] == rows
    waiting = asyncio.ensure_future(anext(follower))
    await asyncio.sleep(0.1)
    for run_id in ("run-0", "run-2", "run-1"):
        await ledger.record_feedback(f"session-{run_id[-1:] == '1':d}", run_id, useful=False)
    place, event = await waiting
    assert (event.type, event.fields["run_id"]) == ("feedback.recorded", "run-1")
    assert place == await ledger.reader.last_leaf() == follower.position


async def test_a_run_of_another_session_has_no_events(ledger, run):  # R4
    for submission in run.whole():
        await record(ledger, submission)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await anext(ledger.reader.follow(run=("session-2", "run-1")))


async def test_whoever_has_seen_more_than_there_is_is_told(ledger, run):  # E8
    await record(ledger, run.start())
    with pytest.raises(AheadOfLog, match="ends at 1, and was to be followed after 7") as raised:
        await anext(ledger.reader.follow(7))
    assert (raised.value.after, raised.value.last) == (7, 1)


async def test_a_cancelled_follower_misses_nothing_when_it_goes_on(ledger, run):  # CASES 37
    await record(ledger, run.start())
    follower = ledger.reader.follow()
    await take(follower, 2)
    for number in range(50):
        waiting = asyncio.ensure_future(anext(follower))
        for _ in range(number % 7):
            await asyncio.sleep(0)
        recorded = ledger.journal.submit(run.transition(f"n{number}"))
        waiting.cancel()
        await asyncio.wait([waiting])
        await asyncio.wrap_future(recorded)
        if not waiting.cancelled():
            assert waiting.result()[0] == number + 2
        else:
            assert places(await take(follower, 1)) == [number + 2]


async def test_followers_that_are_left_leave_nothing_behind(path, run, plain):  # CASES 37
    async with await Ledger.open(path) as ledger:
        await record(ledger, run.start())
        for pause_s in (0.0, 0.3):
            waiting = [asyncio.ensure_future(take(ledger.reader.follow(), 5)) for _ in range(50)]
            await asyncio.sleep(pause_s)
            for one in waiting:
                one.cancel()
            await asyncio.wait(waiting)
        async with asyncio.timeout(20):
            while asyncio.all_tasks() != {asyncio.current_task()}:
                await asyncio.sleep(IDLE_S / 10)
        assert ledger.reader._reads.engine.pool.checkedout() == 0
        assert ledger.reader._following.waiting_count == 0
        assert ledger._engine.bell._listening == {}
    assert plain().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


async def test_a_follower_of_a_reader_that_is_closed_is_told(ledger, path):
    reader = await LedgerReader.open(path)
    waiting = asyncio.ensure_future(anext(reader.follow()))
    await asyncio.sleep(0.1)
    await reader.close()
    with pytest.raises(LedgerUnreadable, match="was closed"):
        await waiting


async def test_a_follower_of_a_file_that_is_replaced_is_told(ledger, path):
    async with await LedgerReader.open(path) as reader:
        waiting = asyncio.ensure_future(anext(reader.follow()))
        await asyncio.sleep(0.1)
        path.rename(path.with_suffix(".old"))
        with pytest.raises(LedgerUnreadable, match="replaced or removed"):
            async with asyncio.timeout(20):
                await waiting


async def test_followers_may_come_in_the_moment_in_which_the_watch_ends(ledger, run):
    await record(ledger, run.start())
    follower = ledger.reader.follow(await ledger.reader.last_leaf())
    for number in range(3):
        waiting = asyncio.ensure_future(anext(follower))
        await asyncio.sleep(0.01)
        await record(ledger, run.transition(f"n{number}"))
        assert (await waiting)[0] == number + 2
        await asyncio.sleep(IDLE_S - 0.03 + number * 0.03)


async def test_a_watch_costs_next_to_nothing_while_nothing_happens(ledger, run):
    await record(ledger, run.start())
    after = await ledger.reader.last_leaf()
    waiting = [asyncio.ensure_future(anext(ledger.reader.follow(after))) for _ in range(200)]
    await all_wait(ledger, 200)
    await asyncio.sleep(0.5)
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    await asyncio.sleep(1.0)
    share = (time.process_time() - began_cpu_s) / (time.perf_counter() - began_s)
    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert share < 0.1


@pytest.mark.parametrize("after", [-1, True, 1.5, "3", 2**60])
def test_a_place_is_a_whole_number(ledger, after):
    with pytest.raises(ValueError, match="after"):
        ledger.reader.follow(after)


@pytest.mark.parametrize("read", ["log", "session", "run"])
async def test_a_page_of_the_log_is_read_in_its_own_order(ledger, path, read):
    statement = getattr(SqliteReads.leaf_queries, read)
    values = {"after": 5, "until": 9, "session_id": "s", "stream_id": "r:r", "limit": 5}
    plan = await explain(ledger, statement, values)
    assert not [line for line in plan if line.startswith("SCAN") or "TEMP B-TREE" in line], plan
    if read == "run":
        assert "stream_id=?" in plan[0]
