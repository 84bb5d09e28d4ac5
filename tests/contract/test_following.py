"""Following the log: every event once, in one order, soon, and whatever becomes of those who follow (SPEC E8)."""

import asyncio
import time

import pytest

from ledger import AheadOfLog, LedgerReader, LedgerUnreadable
from ledger.following.following import IDLE_S, PAGE_EVENTS, RECENT_EVENTS
from ledger.following.leaves import Wanted
from tests.faults import programs
from tests.faults.processes import start
from tests.ledger.scripted import ScriptedRun

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


def of_log(plain, condition="true"):
    """The public order, as any program can read it."""
    outsider = plain()
    if outsider.dialect == "sqlite":
        statement = "SELECT pos - 1, event_id FROM event WHERE {} ORDER BY pos"
    else:
        statement = (
            "SELECT leaf_index, event_id FROM leaf JOIN event USING (stream_id, seq) WHERE {} ORDER BY leaf_index"
        )
    return outsider.execute(statement.format(condition)).fetchall()


async def ordered(ledger, count):
    """Wait until so many events have their place."""
    async with asyncio.timeout(20):
        while await ledger.reader.last_leaf() < count - 1:
            await asyncio.sleep(0.01)


async def all_ordered(ledger):
    """Wait until every event has its place."""
    async with asyncio.timeout(20):
        while (await ledger.reader.vitals()).unsequenced:
            await asyncio.sleep(0.01)


async def test_a_follower_sees_every_event_once_in_the_order_of_the_log(ledger, run, plain):  # E8
    for submission in run.whole():
        await record(ledger, submission)
    await ordered(ledger, run.events_made + 1)
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
    await ordered(ledger, run.events_made + 1)
    log = of_log(plain)
    for after in range(len(log) - 1):
        taken = await take(ledger.reader.follow(after), len(log) - after - 1)
        assert [(place, event.event_id) for place, event in taken] == log[after + 1 :]


async def test_what_is_acknowledged_is_seen_soon(ledger, run):  # E8
    await record(ledger, run.start())
    await ordered(ledger, 2)
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


async def test_what_another_process_writes_is_seen_soon(database):  # E8
    program = start(programs.tell_times, database.url, 20)
    assert program.pipe.recv() == "ready"
    async with await LedgerReader.open(database.url) as reader:
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
    await ordered(ledger, 2)
    after = await ledger.reader.last_leaf()
    quick, slow = ledger.reader.follow(after), ledger.reader.follow(after)
    first = asyncio.ensure_future(anext(quick))
    await record_many(ledger, run, burst)
    taken = [await first, *await take(quick, burst - 1)]
    assert places(taken) == list(range(after + 1, after + 1 + burst))
    assert places(await take(slow, burst)) == places(taken)


async def test_two_hundred_followers_share_one_watch_and_each_sees_everything(ledger, run):  # E8
    await record(ledger, run.start())
    await ordered(ledger, 2)
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
    await ordered(ledger, sum(run.events_made for run in runs) + 2)
    rows = of_log(plain, condition)
    follower = ledger.reader.follow(**wanted)
    assert [(place, event.event_id) for place, event in await take(follower, len(rows))] == rows
    waiting = asyncio.ensure_future(anext(follower))
    await asyncio.sleep(0.1)
    for run_id in ("run-0", "run-2", "run-1"):
        await ledger.record_feedback(f"session-{run_id[-1:] == '1':d}", run_id, useful=False)
    place, event = await waiting
    assert (event.type, event.fields["run_id"]) == ("feedback.recorded", "run-1")
    assert place == await ledger.reader.last_leaf() == follower.position


async def test_who_waits_is_woken_only_by_what_it_wants_and_reads_nothing_of_its_own(ledger, run, monkeypatch):  # E8
    other = ScriptedRun("run-2", writer_id="w2")
    await record(ledger, run.start())
    await record(ledger, other.start())
    await ordered(ledger, 3)
    after = await ledger.reader.last_leaf()
    of_run, of_other, of_all = (
        [asyncio.ensure_future(take(ledger.reader.follow(after, **wanted), 20)) for _ in range(20)]
        for wanted in ({"run": ("session-1", "run-1")}, {"run": ("session-1", "run-2")}, {"session": "session-1"})
    )
    # Until the watch has come to the end of the log, where all of them wait.
    async with asyncio.timeout(20):
        while ledger.reader._following._position < after:
            await asyncio.sleep(0.01)
    await all_wait(ledger, 60)
    asked_for = []
    leaves = ledger.reader.leaves

    async def counted(wanted, after, limit):
        asked_for.append(wanted)
        return await leaves(wanted, after, limit)

    monkeypatch.setattr(ledger.reader, "leaves", counted)
    waiting = {came for alike in ledger.reader._following._waiting.values() for came in alike}
    for number in range(20):
        await record(ledger, run.transition(f"n{number}"))
    for taken in (*of_run, *of_all):
        assert places(await taken) == list(range(after + 1, after + 21))
    assert set(asked_for) == {Wanted()}
    # Those of the other run wait as they did.
    still = ledger.reader._following._waiting
    assert list(still) == [Wanted("session-1", "run-2")]
    assert still[Wanted("session-1", "run-2")] <= waiting
    await record_many(ledger, other, 20)
    for taken in of_other:
        assert [event.seq for _, event in await taken] == list(range(2, 22))
    assert set(asked_for) == {Wanted()}


async def test_what_is_at_hand_is_given_without_waiting_or_reading(ledger, run):  # E8
    await record(ledger, run.start())
    await ordered(ledger, 2)
    follower = ledger.reader.follow(await ledger.reader.last_leaf())
    assert follower.at_hand() == []
    first = asyncio.ensure_future(follower.page(limit=1))
    await all_wait(ledger, 1)
    recorded = [await record(ledger, run.transition(f"n{number}")) for number in range(3)]
    taken = await first
    async with asyncio.timeout(20):
        while len(taken) < 3:
            taken += follower.at_hand()
            await asyncio.sleep(0.01)
    assert [event.seq for _, event in taken] == [one.last_seq for one in recorded]
    assert follower.position == await ledger.reader.last_leaf()


async def test_a_run_of_another_session_has_no_events(ledger, run):  # R4
    for submission in run.whole():
        await record(ledger, submission)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await anext(ledger.reader.follow(run=("session-2", "run-1")))


async def test_whoever_has_seen_more_than_there_is_is_told(ledger, run):  # E8
    await record(ledger, run.start())
    await ordered(ledger, 2)
    with pytest.raises(AheadOfLog, match="ends at 1, and was to be followed after 7") as raised:
        await anext(ledger.reader.follow(7))
    assert (raised.value.after, raised.value.last) == (7, 1)


async def test_a_cancelled_follower_misses_nothing_when_it_goes_on(ledger, run):  # CASES 37
    await record(ledger, run.start())
    await ordered(ledger, 2)
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


async def test_a_follower_of_a_reader_that_is_closed_is_told(ledger, database):
    reader = await LedgerReader.open(database.url)
    waiting = asyncio.ensure_future(anext(reader.follow()))
    await asyncio.sleep(0.1)
    await reader.close()
    with pytest.raises(LedgerUnreadable, match="was closed"):
        await waiting


async def test_followers_may_come_in_the_moment_in_which_the_watch_ends(ledger, run):
    await record(ledger, run.start())
    await ordered(ledger, 2)
    follower = ledger.reader.follow(await ledger.reader.last_leaf())
    for number in range(3):
        waiting = asyncio.ensure_future(anext(follower))
        await asyncio.sleep(0.01)
        await record(ledger, run.transition(f"n{number}"))
        assert (await waiting)[0] == number + 2
        await asyncio.sleep(IDLE_S - 0.03 + number * 0.03)


@pytest.mark.parametrize("after", [-2, True, 1.5, "3", 2**60])
def test_a_place_is_a_whole_number(ledger, after):
    with pytest.raises(ValueError, match="after"):
        ledger.reader.follow(after)
