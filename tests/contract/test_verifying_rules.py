"""A log that was written anew, with every hash and link as it should be, still has to be one that could have come."""

from __future__ import annotations

import json

import pytest

from harness import events as e
from ledger.bytes import body_hash, genesis_link, next_link
from ledger.verifying import verify
from tests.contract.test_verifying import disarm
from tests.ledger.scripted import ScriptedRun


@pytest.fixture
async def rewrite(ledger, database, plain):
    """Records a run, lets somebody who owns the database change its bodies, and says what is found."""
    outsider = plain()

    def bodies_of(stream_id):
        rows = outsider.execute("SELECT body FROM event WHERE stream_id = ? ORDER BY seq", [stream_id])
        return [json.loads(bytes(body)) for (body,) in rows]

    async def rewritten(submissions, change):
        for submission in submissions:
            ledger.journal.submit(submission).result()
        assert (await verify(database.url)).findings == ()
        for table in ("event", "stream"):
            disarm(outsider, table)
        bodies = bodies_of("r:run-1")
        change(bodies)
        forge(outsider, "r:run-1", bodies)
        return [
            (finding.problem, finding.seq)
            for finding in (await verify(database.url)).findings
            if finding.stream_id == "r:run-1"
        ]

    return rewritten


def forge(outsider, stream_id, bodies):
    """Put other bodies in the place of a stream's events, with the hashes and links that belong to them."""
    (ledger_id,) = outsider.execute("SELECT value FROM ledger_meta WHERE key = 'ledger_id'").fetchone()
    link = genesis_link(ledger_id, stream_id)
    outsider.execute("UPDATE event SET event_id = event_id || 'x', type = 'x' WHERE stream_id = ?", [stream_id])
    times = outsider.execute("SELECT recorded_us FROM event WHERE stream_id = ? ORDER BY seq", [stream_id])
    for seq, (fields, (recorded_us,)) in enumerate(zip(bodies, times, strict=True), 1):
        body = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
        link = next_link(link, seq, recorded_us, body_hash(body))
        outsider.execute(
            "UPDATE event SET body = ?, body_hash = ?, link = ?, event_id = ?, type = ?, version = ?, occurred_us = ?"
            " WHERE stream_id = ? AND seq = ?",
            [body, body_hash(body), link, *(fields[name] for name in ("event_id", "type", "version", "occurred_us")),
             stream_id, seq],
        )  # fmt: skip
    outsider.execute("UPDATE stream SET head_link = ? WHERE stream_id = ?", [link, stream_id])


def swap(first, second):
    def change(bodies):
        bodies[first - 1], bodies[second - 1] = bodies[second - 1], bodies[first - 1]

    return change


def put(seq, **fields):
    return lambda bodies: bodies[seq - 1].update(fields)


def whole():
    return list(ScriptedRun().whole())


async def test_what_comes_after_the_end_is_found(rewrite):  # E6
    count = sum(len(submission.events) for submission in whole())
    assert await rewrite(whole(), swap(count - 1, count)) == [("event_out_of_place", count)]


async def test_an_end_before_its_start_is_found(rewrite):
    types = [event.type for submission in whole() for event in submission.events]
    end = types.index("attempt.succeeded") + 1
    assert await rewrite(whole(), swap(end - 1, end)) == [("event_out_of_place", end - 1)]


async def test_a_run_that_does_not_begin_with_its_start_is_found(rewrite):
    assert await rewrite(whole(), swap(1, 2)) == [("event_out_of_place", 1)]


async def test_an_event_that_says_what_none_can_say_is_found(rewrite):
    assert await rewrite(whole(), put(2, to_node=7)) == [("event_unreadable", 2)]


async def test_a_time_that_no_clock_shows_is_found(rewrite, plain):
    def change(_):
        plain().execute("UPDATE event SET recorded_us = ? WHERE stream_id = 'r:run-1' AND seq = 3", [2**60])

    assert await rewrite(whole(), change) == [("event_unreadable", 3)]


async def test_what_an_event_says_otherwise_is_found_in_the_rows(rewrite):  # E1
    assert await rewrite(whole(), put(1, agent="somebody")) == [("row_differs", None)]


def two_tools():
    run = ScriptedRun()
    yield run.start(limits={"tool_calls": 2, "tool_default": 2, "run_bytes": 1_000})
    for _ in range(2):
        tool = run.attempt()
        yield tool.start()
        yield tool.succeed()
    yield run.end()


async def test_more_than_a_limit_allows_cannot_have_been_granted(rewrite):  # H4
    second = 5
    limits = {"tool_calls": 1, "tool_default": 2, "run_bytes": 1_000}
    assert await rewrite(two_tools(), put(1, limits=limits)) == [("budget_exceeded", second)]


async def test_a_limit_that_is_only_observed_may_be_passed(rewrite):  # D13
    limits = {"observe:tool_calls": 1, "tool_default": 2, "run_bytes": 1_000}
    assert await rewrite(two_tools(), put(1, limits=limits)) == [("row_differs", None)]


def in_a_scope():
    run = ScriptedRun()
    yield run.start()
    yield run.open_scope("s1", tool_calls=2)
    yield run.open_scope("s2", "s1", tool_calls=9)
    for _ in range(2):
        tool = run.attempt(scope_id="s2")
        yield tool.start()
        yield tool.succeed()
    yield run.close_scope("s2")
    yield run.close_scope("s1")
    yield run.end()


async def test_so_it_is_with_the_limits_of_scopes_around_it(rewrite):  # D5
    second = 7
    assert await rewrite(in_a_scope(), put(2, limits={"tool_calls": 1})) == [("budget_exceeded", second)]


async def test_tokens_that_do_not_add_up_cannot_have_been_settled(rewrite):  # H4a
    usage = {"input_tokens": 12, "output_tokens": 3, "total_tokens": 16}
    types = [event.type for submission in whole() for event in submission.events]
    settled = types.index(e.UsageSettled.model_fields["type"].default) + 1
    assert await rewrite(whole(), put(settled, usage=usage)) == [("usage_differs", settled)]
