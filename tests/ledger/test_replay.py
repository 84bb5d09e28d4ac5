"""A replay of one run: where it can go, what it says, and what it does where a run makes no sense."""

import json
from dataclasses import replace

import pytest

from ledger import RunUnreadable
from ledger.audit.walking.replay import PAGE_EVENTS, NoSuchEvent, Replay
from ledger.audit.walking.standing import changes, standing
from tests.ledger.scripted import ScriptedRun
from tests.property.test_replay import recorded


def events_of(*submissions):
    events = [event for submission in submissions for event in submission.events]
    return [recorded(event, seq) for seq, event in enumerate(events, 1)]


async def words(replay, seq):
    return [change.words for change in changes(await replay.before(seq), await replay.at(seq))]


async def test_what_each_event_changed_is_told_in_the_words_of_the_page():
    run = ScriptedRun()
    step, tool = run.attempt("model", "planner"), run.attempt()
    replay = Replay.of(
        events_of(
            run.start(limits={"model_calls": 2, "tool_default": 3, "input_tokens": 90}, flow="CHAT_GRAPH"),
            run.transition("planner"),
            step.start(reserve={"input_tokens": 20}),
            step.succeed(usage={"input_tokens": 12}),
            run.open_scope("inner", tool_calls=4),
            tool.start(),
            run.signal_cancellation("USER_REQUESTED"),
            tool.abandon(),
            run.close_scope("inner"),
            run.end("CANCELLED", "USER_REQUESTED"),
        )
    )
    assert await words(replay, 1) == [
        "run: running",
        "model calls: 0 of 2",
        "input tokens: 0 of 90",
        "run bytes: 26 bytes",
        "flow: CHAT_GRAPH",
    ]
    assert await words(replay, 2) == ["graph: planner"]
    assert await words(replay, 3) == ["model calls: 0 → 1 of 2", "input tokens: 0 → 20 (20 reserved) of 90"]
    assert await words(replay, 4) == ["model steps: 1", "open: planner"]
    assert "no longer open: planner" in await words(replay, 5)
    assert await words(replay, 6) == [
        "input tokens: 20 (20 reserved) → 12 of 90",
        "total tokens: 12",
        "no longer unsettled: planner",
    ]
    assert await words(replay, 7) == ["open scope: inner", "scope inner, tool calls: 0 of 4"]
    assert await words(replay, 8) == ["tool calls: 1", "query_logs: 1 of 3"]
    assert await words(replay, 10) == ["cancellation signalled: user requested"]
    assert await words(replay, 11) == ["abandoned: query_logs", "no longer open: query_logs"]
    assert await words(replay, 12) == ["no longer open scope: inner"]
    assert await words(replay, 13) == ["run: running → cancelled (user requested)"]


async def test_the_time_that_is_left_falls_to_nothing_and_ends_with_the_run():
    run = ScriptedRun()
    replay = Replay.of(
        events_of(
            run.start(timeout_us=2_500),
            run.transition("planner"),
            run.transition("executor", "planner"),
            run.end("TIMED_OUT", "DEADLINE_EXCEEDED", elapsed_us=2_600),
        )
    )
    left = [standing(await replay.at(seq)).left_us for seq in range(1, 5)]
    assert left == [1_500, 500, 0, 0]
    assert standing(await replay.at(4)).elapsed_us == 2_600
    assert await replay.first_failure() == 4


async def test_a_long_run_is_walked_back_from_marks_and_not_from_its_beginning():  # CASES 40
    run = ScriptedRun()
    events = events_of(run.start(), *(run.transition(f"n{number}") for number in range(4 * PAGE_EVENTS)))
    asked = []

    async def pages(after_seq, limit):
        asked.append((after_seq, limit))
        return events[after_seq : after_seq + limit]

    replay = Replay(pages)
    await replay.at(len(events))
    asked.clear()
    there = await replay.at(3 * PAGE_EVENTS)
    back = await replay.at(2 * PAGE_EVENTS + 1)
    assert asked == [(2 * PAGE_EVENTS, PAGE_EVENTS)]
    assert (there.node, back.node) == (f"n{3 * PAGE_EVENTS - 2}", f"n{2 * PAGE_EVENTS - 1}")


@pytest.mark.parametrize("seq", [0, -1, 3])
async def test_an_event_that_is_not_there_is_named_with_how_many_there_are(seq):
    run = ScriptedRun()
    with pytest.raises(NoSuchEvent) as raised:
        await Replay.of(events_of(run.start(), run.end())).at(seq)
    assert (raised.value.seq, raised.value.event_count) == (seq, 2)


async def test_a_run_that_goes_on_is_seen_to_go_on():
    run = ScriptedRun()
    events = events_of(run.start())
    replay = Replay.of(events)
    with pytest.raises(NoSuchEvent):
        await replay.at(2)
    events.append(recorded(run.end().events[0], 2))
    assert standing(await replay.at(2)).status == "SUCCESS"


async def test_up_to_where_events_make_no_sense_a_run_can_be_looked_at():
    run = ScriptedRun()
    replay = Replay.of(events_of(run.start(), run.end(), run.end("FAILED")))
    assert standing(await replay.at(2)).status == "SUCCESS"
    for _ in range(2):
        with pytest.raises(RunUnreadable, match="event 3"):
            await replay.at(3)


async def test_an_event_of_an_unknown_type_changes_nothing_and_says_so():
    run = ScriptedRun()
    events = events_of(run.start(), run.transition("planner"))
    strange = {**events[1].fields, "type": "weather.changed"}
    unknown = replace(events[1], fields=strange, body=json.dumps(strange).encode())
    replay = Replay.of([events[0], unknown])
    moment = await replay.at(2)
    assert (moment.is_known, moment.node, changes(await replay.at(1), moment)) == (False, None, ())
