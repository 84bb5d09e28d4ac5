"""Appending: all or none, once, in order, and exactly what was given."""

import contextlib
import random
import threading

import orjson
import pytest
from pydantic import ValidationError

from harness import events as e
from harness.content import MAX_CONTENT_BYTES, SealedContent, encode_content
from harness.errors import IllegalEvent
from ledger import AppendConflict, EventIdReused, TooLarge
from ledger.bytes import body_of, genesis_link, next_link
from ledger.verifying import verify
from tests.ledger.scripted import ScriptedRun, seal


@pytest.fixture
def run():
    return ScriptedRun()


@pytest.fixture
def started(ledger, run):
    ledger.journal.submit(run.start()).result()
    return run


@contextlib.contextmanager
def held_up(journal):
    """While this lasts the writer is busy, so that what is submitted waits together."""
    gate = threading.Event()
    journal.run(lambda _: gate.wait(30))
    yield
    gate.set()


async def bodies(ledger, run):
    return [event.body for event in await ledger.reader.events(run.session_id, run.run_id, limit=5_000)]


async def test_an_event_is_stored_as_the_bytes_that_were_hashed(ledger, run):  # D9
    submissions = list(run.whole())
    for submission in submissions:
        ledger.journal.submit(submission).result()
    assert await bodies(ledger, run) == [body_of(event) for submission in submissions for event in submission.events]


async def test_links_chain_every_event_to_the_ledger_and_the_run(ledger, run, plain):  # E9
    recorded = [ledger.journal.submit(submission).result() for submission in run.whole()]
    ledger_id = plain().execute("SELECT value FROM ledger_meta WHERE key = 'ledger_id'").fetchone()[0]
    link = genesis_link(ledger_id, "r:run-1")
    events = await ledger.reader.events(run.session_id, run.run_id)
    for event in events:
        link = next_link(link, event.seq, event.recorded_us, bytes.fromhex(event.body_hash))
        assert event.link == link.hex()
    assert recorded[-1].head_link == link
    assert (await ledger.reader.trace(run.session_id, run.run_id)).run.head_link == link.hex()


def test_the_columns_of_an_event_repeat_its_body(ledger, run, plain):
    for submission in run.whole():
        ledger.journal.submit(submission).result()
    columns = ("event_id", "type", "version", "stream_id", "session_id", "run_id", "occurred_us")
    for *values, body in plain().execute(f"SELECT {', '.join(columns)}, body FROM event"):
        fields = orjson.loads(body)
        assert values == [fields.get(column) for column in columns]


async def test_1446_events_in_one_append_are_stored_all_in_order(ledger, started):  # CASES 25
    events = [started.transition(f"node-{number}").events[0] for number in range(1_446)]
    recorded = ledger.journal.submit(started.submission(*events)).result()
    assert (recorded.first_seq, recorded.last_seq) == (2, 1_447)
    assert (await bodies(ledger, started))[1:] == [body_of(event) for event in events]


async def test_of_1446_events_in_one_append_none_is_stored_if_the_last_is_illegal(ledger, started):  # CASES 25
    events = [started.transition(f"node-{number}").events[0] for number in range(1_445)]
    with pytest.raises(IllegalEvent):
        ledger.journal.submit(started.submission(*events, *started.attempt().succeed().events)).result()
    assert len(await bodies(ledger, started)) == 1


async def test_a_payload_of_6_mb_is_stored_whole_and_its_neighbours_too(ledger, started):  # CASES 26
    big = seal(random.Random(7).randbytes(6_000_000))
    tools = [started.attempt(ordinal=number) for number in (1, 2, 3)]
    for tool in tools:
        ledger.journal.submit(tool.start())
    ends = [tools[0].succeed("small"), None, tools[2].succeed("small too")]
    fields = {"output_digest": big.digest, "output_bytes": big.size_bytes, "output_stored": True, "duration_us": 1}
    ends[1] = started.submission(tools[1].event(e.AttemptSucceeded, **fields), contents=(big,))
    for future in [ledger.journal.submit(end) for end in ends]:
        future.result()
    trace = await ledger.reader.trace("session-1", "run-1")
    assert [len(tool.output.data) for tool in trace.tool_invocations] == [5, 6_000_000, 9]


async def test_a_content_of_which_only_the_digest_was_kept_gets_its_data_when_they_come(ledger, started, plain):  # D10
    rows = []
    for keep in (False, True, False):
        ledger.journal.submit(started.attempt().start("the same words", keep=keep)).result()
        rows += plain().execute("SELECT state, data, size_bytes FROM content WHERE size_bytes = 14").fetchall()
    assert rows == [("digest_only", None, 14), ("stored", b"the same words", 14), ("stored", b"the same words", 14)]


async def test_a_content_that_was_erased_stays_erased_whatever_comes(ledger, started, plain):  # E10
    erase = "UPDATE content SET state = 'erased', data = NULL, salt = NULL WHERE size_bytes = 14"
    ledger.journal.submit(started.attempt().start("the same words")).result()
    plain().execute(erase)
    for keep in (False, True):
        ledger.journal.submit(started.attempt().start("the same words", keep=keep)).result()
    rows = plain().execute("SELECT state, data, salt FROM content WHERE size_bytes = 14").fetchall()
    assert rows == [("erased", None, None)]


async def test_a_content_above_the_limit_is_refused_with_its_size_and_the_limit(ledger, started):  # CASES 26
    huge = SealedContent("0" * 64, b"\0" * 32, MAX_CONTENT_BYTES + 1, "text/plain", bytes(MAX_CONTENT_BYTES + 1))
    before = ledger.journal.submit(started.transition("planner"))
    with pytest.raises(TooLarge, match="67108865 bytes, and the limit is 67108864"):
        ledger.journal.submit(started.submission(*started.transition("a").events, contents=(huge,)))
    after = ledger.journal.submit(started.transition("b"))
    assert (before.result().last_seq, after.result().last_seq) == (2, 3)


async def test_an_event_above_the_limit_is_refused_before_anything_is_written(ledger, run):
    labels = {f"{number:03}" + "k" * 250: "v" * 256 for number in range(64)}
    with pytest.raises(TooLarge):
        ledger.journal.submit(run.start(labels=labels))
    assert (await ledger.reader.recent_runs()).rows == ()


DIFFICULT = {
    "a zero character": "before\0after",
    "a lone surrogate": "\udc00",
    "not a number": float("nan"),
    "infinity": float("-inf"),
    "minus zero": -0.0,
    "a small float": 1e-07,
    "beyond 64 bits": 2**63,
    "an empty key": {"": 1},
    "keys that differ only in normalization": {"\u00e9": 1, "e\u0301": 2},
    "an emoji key": {"🛑": "🛑"},
    "bytes": b"\x00\xff",
    "nothing": None,
}


def deep(levels):
    value = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize("value", [*DIFFICULT.values(), deep(130)], ids=[*DIFFICULT, "130 levels of nesting"])
async def test_difficult_values_are_stored_and_read_back_exactly_as_content(ledger, started, value):  # CASES 27
    tool = started.attempt()
    ledger.journal.submit(tool.start())
    ledger.journal.submit(tool.succeed(value)).result()
    (invocation,) = (await ledger.reader.trace("session-1", "run-1")).tool_invocations
    content = encode_content(value)
    assert (invocation.output.data, invocation.output.media_type) == (content.data, content.media_type)


@pytest.mark.parametrize("name", ["a\0b", "\udc00", "é", "🛑", "", "x" * 257, 1.5, None], ids=repr)
def test_difficult_values_are_refused_as_fields_of_an_event(run, name):  # CASES 27, D9
    with pytest.raises(ValidationError):
        run.event(e.GraphTransitioned, boundary="transition/x/1/1", to_node=name, cause="NEXT")


@pytest.mark.parametrize("count", [2**53, -1, 1.0, float("nan"), True, "1"], ids=repr)
def test_difficult_numbers_are_refused_as_fields_of_an_event(run, count):  # CASES 27, D9
    with pytest.raises(ValidationError):
        run.event(e.AttemptSucceeded, boundary="tool/x/1/1", attempt_id="a1", duration_us=count)


async def test_two_events_of_one_microsecond_are_both_kept_in_their_order(ledger, started):  # CASES 28
    same = [
        started.event(e.GraphTransitioned, boundary=f"t/{node}/1/1", to_node=node, cause="NEXT", occurred_us=5)
        for node in ("b", "a")
    ]
    ledger.journal.submit(started.submission(*same)).result()
    events = await ledger.reader.events("session-1", "run-1", after_seq=1)
    assert [(event.occurred_us, event.fields["to_node"]) for event in events] == [(5, "b"), (5, "a")]


@pytest.mark.parametrize("together", [True, False])
async def test_start_and_end_of_an_attempt_make_one_complete_row(ledger, started, together):  # CASES 29
    tool = started.attempt()
    start, end = tool.start(), tool.succeed()
    if together:
        contents = (*start.contents, *end.contents)
        ledger.journal.submit(started.submission(*start.events, *end.events, contents=contents)).result()
    else:
        ledger.journal.submit(start).result()
        ledger.journal.submit(end).result()
    (row,) = (await ledger.reader.trace("session-1", "run-1")).tool_invocations
    assert (row.status, row.duration_us, row.input.text, row.output.text) == ("SUCCESS", 700, "input", "output")


class TestTheSameAppendAgain:  # CASES 30, D22
    async def test_is_answered_with_its_first_position(self, ledger, started):
        submission = started.attempt().start()
        first = ledger.journal.submit(submission).result()
        ledger.journal.submit(started.transition("planner")).result()
        assert ledger.journal.submit(submission).result() == first
        assert len(await bodies(ledger, started)) == 4

    def test_is_answered_so_in_the_same_transaction_too(self, ledger, started):
        submission = started.attempt().start()
        with held_up(ledger.journal):
            first, second = [ledger.journal.submit(submission) for _ in range(2)]
        assert first.result() == second.result()

    def test_is_answered_so_after_the_run_has_ended(self, ledger, run):
        submissions = list(run.whole())
        recorded = [ledger.journal.submit(submission).result() for submission in submissions]
        assert [ledger.journal.submit(submission).result() for submission in submissions] == recorded

    def test_with_another_body_is_an_error(self, ledger, started):
        event = started.transition("planner").events[0]
        ledger.journal.submit(started.submission(event)).result()
        other = event.model_copy(update={"to_node": "executor"})
        with pytest.raises(EventIdReused) as caught:
            ledger.journal.submit(started.submission(other)).result()
        assert caught.value.event_id == event.event_id

    async def test_in_part_is_an_error_and_stores_nothing(self, ledger, started):
        event = started.transition("planner").events[0]
        ledger.journal.submit(started.submission(event)).result()
        with pytest.raises(EventIdReused):
            ledger.journal.submit(started.submission(event, *started.transition("executor").events)).result()
        assert len(await bodies(ledger, started)) == 2

    def test_does_not_care_which_position_was_expected(self, ledger, started):
        submission = started.request_cancellation()
        first = ledger.journal.submit(submission, seq_expected=1).result()
        assert ledger.journal.submit(submission, seq_expected=1).result() == first


async def test_of_twenty_writers_that_expect_the_same_position_one_wins(ledger, started):  # CASES 36, E5
    barrier = threading.Barrier(20)
    outcomes = []

    def append(number):
        writer = ScriptedRun(writer_id=f"writer-{number}")
        submission = writer.request_cancellation()
        barrier.wait()
        future = ledger.journal.submit(submission, seq_expected=1)
        outcomes.append(future.exception() or future.result())

    threads = [threading.Thread(target=append, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    conflicts = [outcome for outcome in outcomes if isinstance(outcome, AppendConflict)]
    assert len(conflicts) == 19
    assert {(conflict.seq_expected, conflict.seq_found) for conflict in conflicts} == {(1, 2)}
    assert len(await bodies(ledger, started)) == 2


async def test_of_twenty_ledgers_that_expect_the_same_position_one_wins(database):  # CASES 36, E5
    async with contextlib.AsyncExitStack() as opened:
        ledgers = [await opened.enter_async_context(await database.open(lease_s=60)) for _ in range(20)]
        ledgers[0].journal.submit(ScriptedRun().start()).result()
        futures = [
            ledger.journal.submit(ScriptedRun(writer_id=f"writer-{number}").request_cancellation(), seq_expected=1)
            for number, ledger in enumerate(ledgers)
        ]
        conflicts = [future.exception() for future in futures if future.exception() is not None]
        assert {(type(one), one.seq_expected, one.seq_found) for one in conflicts} == {(AppendConflict, 1, 2)}
        assert len(conflicts) == 19
        assert len(await ledgers[0].reader.events("session-1", "run-1")) == 2


async def test_one_bad_append_in_a_group_fails_alone_even_when_only_the_database_notices(ledger, started):
    # A case id that another run has: no fold of one run can know.
    other = ScriptedRun("run-2", writer_id="w2")
    ledger.journal.submit(other.start()).result()
    taken = {"case_id": "case-1", "verdict": "ACCEPTED", "elapsed_us": None}
    ledger.journal.submit(other.submission(other.event(e.CaseRecorded, **taken))).result()
    group = [
        started.transition("planner"),
        started.submission(started.event(e.CaseRecorded, **taken)),
        started.transition("executor"),
        other.transition("planner"),
    ]
    with held_up(ledger.journal):
        futures = [ledger.journal.submit(submission) for submission in group]
    assert [future.exception() is None for future in futures] == [True, False, True, True]
    assert futures[1].exception().code == "constraint_violated"
    assert futures[2].result().last_seq == 3
    assert futures[3].result().last_seq == 3
    assert not (await ledger.rebuild()).runs_changed


async def test_what_was_appended_is_counted_and_nothing_waits_in_the_end(ledger):
    run = ScriptedRun()
    for submission in run.whole():
        ledger.journal.submit(submission).result()
    await ledger.open_session("session-2")  # the last one is counted once it was answered
    measures = ledger.measures()
    assert sum(measures.append_s.counts) == sum(1 for _ in ScriptedRun().whole())
    assert (measures.load.queue_appends, measures.load.queue_bytes, measures.load.permits_granted) == (0, 0, 0)
    assert measures.failed == {}


async def test_what_waits_in_a_crowd_as_bytes_only_is_stored_as_it_was_said(database, ledger, monkeypatch):
    monkeypatch.setattr("ledger.append.front.CROWDED_APPENDS", 0)
    run = ScriptedRun()
    for submission in run.whole():
        last = ledger.journal.submit(submission)
    assert last.result().last_seq == run.events_made
    assert (await verify(database.url)).findings == ()
    events = await ledger.reader.events("session-1", "run-1")
    said = [event for submission in ScriptedRun().whole() for event in submission.events]
    assert [event.body for event in events] == [body_of(event) for event in said]
