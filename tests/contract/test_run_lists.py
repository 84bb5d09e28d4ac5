"""Lists of runs and sessions: exactly those that fit, newest first, page by page (R5, E11)."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from harness.errors import InvalidInput
from ledger import InvalidCursor
from ledger.reading import tallying
from ledger.reading.cursor import LOWEST_ID, RunCursor, SessionCursor
from ledger.reading.tallying import REASONS, TalliedRun
from ledger.run_filter import RunFilter
from tests.contract.listed import FILTERS, described, expected, record_many


async def all_runs(reader, wanted, limit=500):
    found, cursor = [], None
    while True:
        page = await reader.runs(wanted, limit=limit, cursor=cursor)
        assert len(page.rows) <= limit
        found += [run.run_id for run in page.rows]
        cursor = page.next_cursor
        if cursor is None:
            return found


@pytest.fixture
async def recorded(ledger):
    await record_many(ledger)
    return ledger


@pytest.fixture
def reader(recorded):
    return recorded.reader


async def test_each_condition_and_each_two_pick_out_the_runs_that_fit(reader):
    runs = (await reader.runs(limit=500)).rows
    tools = {run.run_id: await tools_of(reader, run) for run in runs}
    for one, other in itertools.combinations_with_replacement(FILTERS, 2):
        wanted = RunFilter(**(one | other))
        assert await all_runs(reader, wanted, limit=7) == expected(runs, tools, wanted), described(wanted)


async def tools_of(reader, run):
    return {tool.tool_name for tool in await reader.tools(run.session_id, run.run_id)}


async def test_every_filter_of_the_list_has_some_runs_and_leaves_some_out(reader):
    total = len(await all_runs(reader, RunFilter()))
    for one in FILTERS:
        assert 0 < len(await all_runs(reader, RunFilter(**one))) < total, one


async def test_a_line_says_what_the_run_says(reader):
    for line in (await reader.runs(limit=500)).rows:
        trace = await reader.overview(line.session_id, line.run_id)
        run = trace.run
        assert (line.status, line.query, line.answer_preview) == (
            run.summary.status,
            run.summary.query,
            run.summary.answer_preview,
        )
        names = ("agent", "agent_version", "actor", "environment", "labels", "outcome_reason", "degraded", "currency")
        assert [getattr(line, name) for name in names] == [getattr(run, name) for name in names]
        assert (line.event_count, line.elapsed_us, line.ended_us) == (run.event_count, run.elapsed_us, run.ended_us)
        assert (line.input_tokens, line.cost_micros) == (run.usage.get("input_tokens"), run.usage.get("cost_micros"))
        assert line.useful == (trace.feedback or {}).get("useful")
        assert line.incidents == run.incidents
        assert not line.is_checkpointed


async def test_pages_stay_as_they_are_while_runs_are_appended(recorded):
    reader, before = recorded.reader, await all_runs(recorded.reader, RunFilter())
    page = await reader.runs(limit=10)
    found = [run.run_id for run in page.rows]
    number = 0
    while page.next_cursor is not None:
        await record_many(recorded, count=1, first=1000 + number)
        number += 1
        page = await reader.runs(limit=10, cursor=page.next_cursor)
        found += [run.run_id for run in page.rows]
    assert (found, number > 2) == (before, True)


async def test_a_prefix_shows_nothing_of_other_sessions(reader):
    for prefix in ("tenant-a", "tenant-a-", "tenant-"):
        lines = (await reader.runs(RunFilter(session_prefix=prefix), limit=500)).rows
        sessions = (await reader.sessions(limit=500, prefix=prefix)).rows
        assert lines
        assert sessions
        assert all(line.session_id.startswith(prefix) for line in (*lines, *sessions))


async def test_a_page_looks_at_no_more_rows_than_its_bound_and_says_so(reader, monkeypatch):
    monkeypatch.setattr("ledger.reading.run_list.SCAN_ROWS_MAX", 10)
    monkeypatch.setattr("ledger.reading.run_list.SCAN_ROWS", 5)
    wanted = RunFilter(reason="HARNESS_LOST")
    page = await reader.runs(wanted)
    assert ([run.run_id for run in page.rows], page.is_cut) == (["run-0047"], True)
    assert RunCursor.decode(page.next_cursor).run_id == (await reader.runs(limit=10)).rows[-1].run_id
    assert await all_runs(reader, wanted) == ["run-0047", "run-0037", "run-0027", "run-0017", "run-0007"]


@pytest.mark.parametrize("most", [3, 4, 8])
async def test_no_cursor_names_what_a_prefix_leaves_out(reader, monkeypatch, most):
    whole = (await reader.runs(limit=500)).rows
    sessions = [one.session_id for one in (await reader.sessions(limit=500, prefix="tenant-a-")).rows]
    for module, bound in (("run_list", most), ("session_list", 2)):
        monkeypatch.setattr(f"ledger.reading.{module}.SCAN_ROWS_MAX", bound)
        monkeypatch.setattr(f"ledger.reading.{module}.SCAN_ROWS", bound)
    wanted = RunFilter(session_prefix="tenant-a-", agent="writer")
    own = {run.run_id for run in whole if run.session_id.startswith("tenant-a-")}
    found, cursors, page = [], [], await reader.runs(wanted)
    while page.next_cursor is not None:
        found += page.rows
        cursors.append(RunCursor.decode(page.next_cursor).run_id)
        page = await reader.runs(wanted, cursor=page.next_cursor)
    listed = [run.run_id for run in (*found, *page.rows)]
    assert listed == [run.run_id for run in whole if run.run_id in own and run.agent == "writer"]
    assert set(cursors) <= own | {LOWEST_ID}
    assert LOWEST_ID in cursors
    listed, named = await sessions_and_cursors(reader, "tenant-a-")
    assert listed == sessions
    assert LOWEST_ID in named
    assert named <= {*sessions, LOWEST_ID}


async def sessions_and_cursors(reader, prefix):
    found, named, cursor = [], set(), None
    while not found or cursor is not None:
        page = await reader.sessions(cursor=cursor, prefix=prefix)
        found += [one.session_id for one in page.rows]
        cursor = page.next_cursor
        named |= set() if cursor is None else {SessionCursor.decode(cursor).session_id}
    return found, named


async def test_an_unknown_session_has_no_runs(reader):
    assert (await reader.runs(RunFilter(session_id="nobody"))).rows == ()


async def test_the_session_that_was_last_active_comes_first(reader):
    found, cursor = [], None
    while not found or cursor is not None:
        page = await reader.sessions(limit=2, cursor=cursor)
        found += page.rows
        cursor = page.next_cursor
    assert found == sorted(found, key=lambda one: (one.last_active_us, one.session_id), reverse=True)
    for line in found:
        session = await reader.session(line.session_id)
        runs = (await reader.session_runs(line.session_id, limit=500)).rows
        assert (line.status, line.message_pair_count) == (session.status, session.message_pair_count)
        assert line.run_count == len(runs)
        assert line.newest_run.run_id == runs[0].run_id


async def test_a_session_without_runs_is_listed(ledger):
    await ledger.open_session("empty")
    (line,) = (await ledger.reader.sessions()).rows
    assert (line.session_id, line.run_count, line.newest_run) == ("empty", 0, None)


async def test_what_a_filter_may_be_set_to_is_what_there_is(reader):
    values = await reader.run_values()
    assert values.agents == ("triage", "writer")
    assert values.flows == ("AI_OPS", "CHAT_GRAPH", "CHAT_SIMPLE")
    assert values.tools == ("query_logs", "query_metrics")
    assert values.label_names == ('qu"ote', "team", "tier")
    assert not values.is_cut


async def test_what_a_filter_may_be_set_to_says_nothing_of_other_sessions(reader):
    everything = (await reader.runs(limit=500)).rows
    for session_id in {run.session_id for run in everything}:
        agents = {run.agent for run in everything if run.session_id == session_id}
        for wanted in (RunFilter(session_id=session_id), RunFilter(session_prefix=session_id)):
            values = await reader.run_values(wanted)
            assert set(values.agents) <= {run.agent for run in everything if run.session_id.startswith(session_id)}
            assert set(values.agents) >= agents - {None}
    nobodys = await reader.run_values(RunFilter(session_prefix="nobody"))
    assert (nobodys.agents, nobodys.actors, nobodys.tools, nobodys.label_names) == ((), (), (), ())


async def test_runs_are_added_up_by_agent(reader):
    tallies = await reader.tallies()
    runs = (await reader.runs(limit=500)).rows
    assert tallies.run_count == len(runs)
    for tally in tallies.agents:
        of_agent = [run for run in runs if (run.agent, run.agent_version) == (tally.agent, tally.agent_version)]
        assert tally.run_count == len(of_agent)
        assert sum(tally.by_status.values()) == len(of_agent)
        assert tally.by_status.get("RUNNING", 0) == sum(run.status == "RUNNING" for run in of_agent)
        assert tally.degraded == sum(run.degraded for run in of_agent)
        assert tally.cost_micros.get("EUR", 0) == sum(run.cost_micros or 0 for run in of_agent)
        assert tally.cost_unknown.get("EUR", 0) == sum(run.cost_unknown_count for run in of_agent if run.currency)
    assert [one.reason for one in tallies.attention] == sorted(
        (one.reason for one in tallies.attention), key=REASONS.index
    )


def test_beside_what_is_added_up_stands_what_is_not_known_of_it():  # H4a, CASES 9
    limits = {"observe:output_tokens": 100, "cost_micros": 10, "model_calls": 4}
    run = TalliedRun("r", "a", "1", "SUCCESS", None, False, 1, 1, limits, {"model_calls": 2}, {}, "EUR", 2, 1)
    (added_up,) = tallying.tally(
        [run, replace(run, usage={"output_tokens": 7, "cost_micros": 3}, cost_unknown_count=0)]
    )
    assert {each.resource: (each.used, each.unknown_count) for each in added_up.spends} == {
        "output_tokens": (7, 4),
        "cost_micros": (3, 1),
        "model_calls": (2, 0),
    }
    assert (added_up.cost_micros, added_up.cost_unknown) == ({"EUR": 3}, {"EUR": 1})


async def test_a_run_that_still_runs_is_added_up_however_old_it_is(reader):
    tallies = await reader.tallies(since_us=2**52)
    assert {status for tally in tallies.agents for status in tally.by_status} == {"RUNNING"}


async def test_more_runs_than_are_added_up_are_cut_and_said_to_be(reader, monkeypatch):
    monkeypatch.setattr("ledger.reading.overview.RUNS_TALLIED_MAX", 5)
    tallies = await reader.tallies()
    assert tallies.is_cut
    assert (await reader.run_values()).is_cut


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"status": ("DONE",)}, "status"),
        ({"session_id": "a b"}, "session_id"),
        ({"session_prefix": ""}, "session_prefix"),
        ({"agent_flow": "a-b"}, "agent_flow"),
        ({"agent": ""}, "agent"),
        ({"labels": {"": "x"}}, "labels"),
        ({"from_us": -1}, "from_us"),
        ({"from_us": 2, "to_us": 1}, "to_us"),
        ({"feedback": "maybe"}, "feedback"),
        ({"without": ("labels",)}, "without"),
        ({"degraded": 1}, "degraded"),
    ],
)
def test_a_condition_that_cannot_be_is_refused_by_its_name(wrong, field):
    with pytest.raises(InvalidInput) as caught:
        RunFilter(**wrong)
    assert caught.value.field == field


async def test_a_cursor_of_one_list_is_none_of_the_other(reader):
    runs, sessions = RunCursor(1, "run-1").encode(), SessionCursor(1, "session-1").encode()
    for read, cursor in ((reader.runs, sessions), (reader.sessions, runs)):
        with pytest.raises(InvalidCursor):
            await read(cursor=cursor)


def test_an_empty_filter_is_one():
    assert RunFilter().is_empty
    assert not replace(RunFilter(), degraded=False).is_empty
