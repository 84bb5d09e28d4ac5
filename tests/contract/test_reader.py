"""The read side: exact answers, one moment each, whatever else is going on."""

import asyncio
from dataclasses import fields

import pytest

from harness.errors import InvalidInput
from ledger import InvalidCursor, LedgerReader, LedgerUnreadable, RunNotFound, SessionNotFound
from ledger.reading.cursor import RunCursor
from ledger.records import RunTrace
from ledger.store.postgres.reads import AT_ONCE
from tests.ledger.scripted import ScriptedRun, seal


@pytest.fixture
async def recorded(ledger):
    """Seven runs in one session, two in another, and a session without any."""
    for number in range(9):
        run = ScriptedRun(f"run-{number}", "session-1" if number < 7 else "session-2")
        run.events_made = 100 * number
        for submission in run.whole():
            ledger.journal.submit(submission).result()
    await ledger.open_session("session-3")
    return ledger


@pytest.fixture
def reader(recorded):
    return recorded.reader


async def ids(page):
    return [run.run_id for run in (await page).rows]


def test_a_trace_has_exactly_the_seven_parts():  # R4
    assert [field.name for field in fields(RunTrace)] == [
        "chat_session",
        "run",
        "agent_steps",
        "tool_invocations",
        "self_evaluation",
        "answer",
        "feedback",
    ]


async def test_a_trace_is_of_one_run_alone(reader):  # R4
    trace = await reader.trace("session-1", "run-3")
    rows = (*trace.agent_steps, *trace.tool_invocations)
    assert {(row.session_id, row.run_id) for row in rows} == {("session-1", "run-3")}
    assert trace.chat_session.session_id == "session-1"


@pytest.mark.parametrize("run_id", ["run-8", "run-unknown"])
async def test_a_foreign_run_looks_like_an_unknown_one(reader, run_id):  # R4, CASES 43
    for read in (reader.trace, reader.events):
        with pytest.raises(RunNotFound) as caught:
            await read("session-1", run_id)
        assert str(caught.value) == f"there is no run {run_id} in session session-1"


@pytest.mark.parametrize("bad", ["", " ", "a b", "../x", "a" * 129, "ü", "a\n", "a\0", None, 7], ids=repr)
async def test_an_unsafe_id_is_refused_before_anything_is_looked_up(reader, bad):  # H1b
    reads = (
        lambda: reader.trace(bad, "run-1"),
        lambda: reader.trace("session-1", bad),
        lambda: reader.events("session-1", bad),
        lambda: reader.session(bad),
        lambda: reader.session_runs(bad),
    )
    for read in reads:
        with pytest.raises(InvalidInput):
            await read()


async def test_the_runs_of_a_session_come_newest_first(reader):  # R5
    assert await ids(reader.session_runs("session-1")) == [f"run-{number}" for number in (6, 5, 4, 3, 2, 1, 0)]


async def test_runs_come_in_pages_without_a_gap_or_a_repetition(reader):
    found, cursor, pages = [], None, 0
    while pages == 0 or cursor:
        page = await reader.session_runs("session-1", limit=3, cursor=cursor)
        found += [run.run_id for run in page.rows]
        cursor, pages = page.next_cursor, pages + 1
    assert (found, pages) == ([f"run-{number}" for number in (6, 5, 4, 3, 2, 1, 0)], 3)


async def test_a_page_that_holds_all_there_is_has_no_next(reader):
    assert (await reader.session_runs("session-1", limit=7)).next_cursor is None
    assert (await reader.session_runs("session-1", limit=6)).next_cursor is not None


async def test_runs_of_one_microsecond_are_all_listed(ledger):
    for number in range(5):
        ledger.journal.submit(ScriptedRun(f"run-{number}").start()).result()
    first = await ledger.reader.recent_runs(limit=3)
    second = await ledger.reader.recent_runs(limit=3, cursor=first.next_cursor)
    assert [run.run_id for run in (*first.rows, *second.rows)] == [f"run-{number}" for number in (4, 3, 2, 1, 0)]


async def test_recent_runs_are_those_of_every_session(reader):
    assert await ids(reader.recent_runs(limit=3)) == ["run-8", "run-7", "run-6"]


async def test_a_session_without_runs_has_an_empty_list_and_an_unknown_one_is_not_found(reader):  # R5
    assert (await reader.session_runs("session-3")).rows == ()
    with pytest.raises(SessionNotFound):
        await reader.session_runs("session-9")
    with pytest.raises(SessionNotFound):
        await reader.session("session-9")


GOOD_CURSOR = RunCursor(1_800_000_000_000_000, "run-1").encode()


@pytest.mark.parametrize(
    "cursor",
    ["", "x", GOOD_CURSOR + "A", GOOD_CURSOR + "=", "MTo1OmEgYg", "ü", "A" * 5_000, RunCursor(10**20, "a").encode()],
    ids=repr,
)
async def test_a_cursor_of_ones_own_making_is_refused(reader, cursor):
    with pytest.raises(InvalidCursor):
        await reader.recent_runs(cursor=cursor)


@pytest.mark.parametrize("limit", [0, -1, 501, True, 1.0, "5", None], ids=repr)
async def test_a_limit_is_a_number_within_bounds(reader, limit):
    with pytest.raises(InvalidInput):
        await reader.recent_runs(limit=limit)


async def test_events_come_in_pages_in_order(reader):
    first = await reader.events("session-1", "run-1", limit=4)
    rest = await reader.events("session-1", "run-1", after_seq=4)
    assert [event.seq for event in (*first, *rest)] == list(range(1, 14))
    assert await reader.events("session-1", "run-1", after_seq=13) == []


@pytest.mark.parametrize("bad", [{"after_seq": -1}, {"after_seq": "1"}, {"limit": 0}, {"limit": 5_001}], ids=str)
async def test_events_are_asked_for_by_numbers(reader, bad):
    with pytest.raises(InvalidInput):
        await reader.events("session-1", "run-1", **bad)


async def test_a_long_answer_is_previewed_by_characters_and_never_cut_within_one(ledger):
    run = ScriptedRun()
    for submission in (run.start(), run.answer("é🛑" * 300), run.end()):
        ledger.journal.submit(submission).result()
    (summary,) = (await ledger.reader.recent_runs()).rows
    trace = await ledger.reader.trace("session-1", "run-1")
    assert summary.answer_preview == trace.run.summary.answer_preview == "é🛑" * 100
    assert trace.answer.text == "é🛑" * 300


async def test_content_of_which_only_the_digest_was_kept_says_so(ledger):  # D10
    run = ScriptedRun()
    step = run.attempt("model", "planner")
    for submission in (run.start(), step.start("a long prompt", keep=False)):
        ledger.journal.submit(submission).result()
    (row,) = (await ledger.reader.trace("session-1", "run-1")).agent_steps
    assert (row.input.state, row.input.data, row.input.text, row.input.size_bytes) == ("digest_only", None, None, 13)
    assert row.input.digest == seal("a long prompt").digest


async def test_content_that_was_erased_is_gone_from_every_answer(recorded, plain):  # E10
    plain().execute("UPDATE content SET state = 'erased', data = NULL, salt = NULL WHERE stream_id = 'r:run-1'")
    trace = await recorded.reader.trace("session-1", "run-1")
    assert (trace.run.summary.query, trace.run.summary.answer_preview, trace.answer.text) == (None, None, None)
    assert {row.output.state for row in (*trace.agent_steps, *trace.tool_invocations)} == {"erased"}
    (summary,) = [run for run in (await recorded.reader.recent_runs()).rows if run.run_id == "run-1"]
    assert (summary.query, summary.answer_preview) == (None, None)


async def test_a_run_of_more_steps_than_a_page_is_shown_whole(ledger):
    run = ScriptedRun()
    tools = [run.attempt() for _ in range(1_203)]
    starts = [tool.start(f"input {number}") for number, tool in enumerate(tools)]
    ends = [tool.succeed(f"output {number}") for number, tool in enumerate(tools)]
    for batch in (run.start(), *starts, *ends):
        future = ledger.journal.submit(batch)
    future.result()
    trace = await ledger.reader.trace("session-1", "run-1")
    assert [row.input.text for row in trace.tool_invocations] == [f"input {number}" for number in range(1_203)]
    assert trace.run.summary.tool_call_count == 1_203


async def test_a_trace_is_of_one_moment_while_its_run_goes_on(ledger):
    run = ScriptedRun()
    ledger.journal.submit(run.start()).result()
    stop = asyncio.Event()

    async def go_on():
        while not stop.is_set():
            tool = run.attempt()
            ledger.journal.submit(tool.start())
            await asyncio.wrap_future(ledger.journal.submit(tool.succeed()))

    going_on = asyncio.create_task(go_on())
    for _ in range(40):
        trace = await ledger.reader.trace("session-1", "run-1")
        assert len(trace.tool_invocations) == trace.run.summary.tool_call_count == trace.run.usage.get("tool_calls", 0)
    stop.set()
    await going_on


async def test_a_session_expires_as_long_after_its_last_activity_as_was_said(database, clock):  # R1
    async with await database.open(wall_clock=clock, session_ttl_s=3600) as ledger:
        run = ScriptedRun()
        for submission in run.whole():
            ledger.journal.submit(submission).result()
        session = await ledger.reader.session("session-1")
        assert session.expires_us == session.last_active_us + 3_600_000_000
        assert session.status == "ACTIVE"
        clock.wall_us = session.expires_us
        assert (await ledger.reader.session("session-1")).status == "EXPIRED"


async def test_a_reader_cannot_write(recorded, database):
    async with await LedgerReader.open(database.url) as reader:
        await reader.recent_runs()
        with pytest.raises(Exception, match=r"read-?only"):
            await reader._reads.read(lambda connection: connection.exec_driver_sql("DELETE FROM diagnosis_run"))


async def test_more_reads_than_there_are_connections_for_is_an_error_of_ours(recorded, monkeypatch):
    monkeypatch.setattr("ledger.reading.room.WAIT_S", 0.01)
    monkeypatch.setattr(recorded.reader._room, "_seats", asyncio.Semaphore(0))
    with pytest.raises(LedgerUnreadable, match="too many"):
        await recorded.reader.recent_runs()
    recorded.reader._room._seats.release()
    for _ in range(3):
        await recorded.reader.recent_runs()


async def test_many_reads_at_once_all_come_to_their_end(recorded):
    pages = await asyncio.gather(*(recorded.reader.recent_runs() for _ in range(3 * AT_ONCE)))
    assert len({page.rows for page in pages}) == 1


async def test_a_reader_that_was_closed_reads_nothing_more(recorded, database):
    reader = await LedgerReader.open(database.url)
    await reader.close()
    with pytest.raises(LedgerUnreadable, match="was closed"):
        await reader.recent_runs()
