"""A run that is executed again is compared with its record, and calls nothing (SPEC D7)."""

import asyncio
import contextlib
import dataclasses
import threading
import time
from dataclasses import dataclass

import pytest

from harness import Capture, CapturePolicy, InvalidInput, LedgerUnavailable, RunningLoop, TokenUsage, ToolCall
from harness.replay import Kind, Recording, Verdict, reexecute
from tests.harness.fakes import limits
from tests.harness.replays import Recorder, again, opened, record


@dataclass
class Reply:
    text: str
    usage: TokenUsage


class World:
    """What operations do, as long as they may be called at all."""

    def __init__(self):
        self.is_closed = False

    def check(self):
        assert not self.is_closed, "an operation was called again"

    async def ask(self, run, question):
        self.check()
        await asyncio.sleep(0.001)
        return Reply(f"look for {question}", TokenUsage(12, 3))

    def look(self, run, pattern):
        self.check()
        return [f"{pattern} killed 4242"]

    async def words(self, run):
        self.check()
        for word in ("out ", "of ", "memory"):
            yield Reply(word, TokenUsage(7, 2))


def agent_of(world, **change):
    """An agent that crosses boundaries of every kind, in one way or, as a `change` says, in another."""

    async def agent(harness):
        async with opened(harness, query="why?", limits=change.get("limits", limits())) as run:
            harness.select_flow(run, change.get("flow", "CHAT_GRAPH"))
            harness.transition(run, None, "planner")
            question = {"question": change.get("question", "OOM")}
            reply = await harness.model(run, "planner", world.ask, args=question, model="m")
            harness.transition(run, "planner", change.get("goes_to", "executor"))
            rows = await harness.tool(run, world.look, call_id="c1")(pattern=change.get("pattern", reply.text))
            if change.get("extra"):
                await harness.tool(run, "extra", world.look, args={"pattern": "x"})
            calls = [ToolCall(world.look, {"pattern": word}) for word in ("a", "b")]
            rows += [result.value[0] for result in await harness.tools(run, calls)]
            if not change.get("fewer"):
                assert await harness.guard(run, "sound", world.look, args={"pattern": "g"})
            text = "".join([chunk.text async for chunk in harness.stream(run, "writer", world.words)])
            if change.get("fails"):
                raise ValueError("no")
            harness.answer(run, f"{text}{rows}{change.get('answer', '')}")

    return agent


def test_a_run_that_succeeded_is_the_same_and_nothing_was_called():
    world = World()
    recording = record(agent_of(world))
    world.is_closed = True
    done = again(recording, agent_of(world))
    assert str(done) == f"same\n{len(recording.events)} of {len(recording.events)} events crossed again"
    assert done.is_same
    assert done.error is None


@pytest.mark.parametrize(
    ("change", "kind", "told"),
    [
        (
            {"question": "swap"},
            Kind.ARGUMENTS,
            ["model/planner/1/1", "only its digest", '{"question":"swap"}'],
        ),
        (
            {"pattern": "x"},
            Kind.ARGUMENTS,
            ["tool/look/1/1", '{"pattern":"look for OOM"}', '{"pattern":"x"}'],
        ),
        ({"extra": True}, Kind.EXTRA, ["input of tool/extra/1/1", '{"pattern":"x"}', "batch/tools/1/1 (event 12)"]),
        ({"fewer": True}, Kind.MISSING, ["event 17, guard/sound/1/1", "crossed:  model/writer/1/1, not let through"]),
        ({"goes_to": "composer"}, Kind.EXTRA, ["transition/executor/1/1 (event 8)", "transition/composer/1/1"]),
        ({"answer": "!"}, Kind.ANSWER, ["recorded: out of memory['look for OOM killed", "killed 4242']!"]),
        ({"flow": "CHAT"}, Kind.EXTRA, ["recorded: flow.selected flow/CHAT_GRAPH/1/1 (event 2)", "flow/CHAT/1/1"]),
        ({"limits": limits(model_calls=7)}, Kind.BEGINNING, ["event 1, run.started", "'model_calls': 7"]),
        ({"fails": True}, Kind.OUTCOME, ["recorded: SUCCESS", "crossed:  FAILED", "ValueError"]),
    ],
)
def test_the_first_divergence_is_named_with_both_of_its_sides(change, kind, told):
    world = World()
    recording = record(agent_of(world))
    world.is_closed = True
    done = again(recording, agent_of(world, **change))
    assert (done.verdict, done.divergence.kind) == (Verdict.DIFFERENT, kind), str(done)
    assert [part for part in told if part not in str(done)] == [], str(done)


def test_another_outcome_is_a_divergence():
    async def fails(harness):
        async with opened(harness) as run:
            await harness.tool(run, "look", lambda run: 1)
            raise ValueError("no")

    async def does_not(harness):
        with contextlib.suppress(ValueError):
            async with opened(harness) as run:
                await harness.tool(run, "look", lambda run: 1)

    done = again(record(fails), does_not)
    assert done.divergence.kind is Kind.OUTCOME
    assert {each.name: (each.recorded, each.crossed) for each in done.divergence.differences} == {
        "outcome": ("FAILED", "SUCCESS"),
        "reason": ("UNHANDLED_EXCEPTION", "COMPLETED"),
        "error_type": ("ValueError", None),
    }


@pytest.mark.parametrize("erased", [False, True])
def test_an_output_that_is_not_there_says_from_which_event_the_code_cannot_be_executed(erased):  # E10
    world = World()
    withheld = CapturePolicy(model_output=Capture.DIGEST_ONLY)
    recording = record(agent_of(world), capture=CapturePolicy() if erased else withheld)
    end = next(event for event in recording.events if event.type == "attempt.succeeded")
    if erased:
        left = {key: content for key, content in recording.contents.items() if key != end.output_digest}
        recording = dataclasses.replace(recording, contents=left)
    done = again(recording, agent_of(world), capture=withheld)
    why = "was erased" if erased else "was withheld: only a digest or a redacted form of it is on record"
    told = f"cannot re-execute from event 6, model/planner/1/1: the content of the output {why}"
    assert (done.verdict, str(done.unavailable)) == (Verdict.CANNOT, told)


def test_a_redacted_output_is_not_what_the_code_was_given():  # E10
    world, masked = World(), CapturePolicy(tool_output=lambda content: b"***")
    done = again(record(agent_of(world), capture=masked), agent_of(world), capture=masked)
    assert str(done.unavailable).startswith(
        "cannot re-execute from event 11, tool/look/1/1: the content of the output was"
    )


def test_an_answer_is_compared_though_only_its_digest_was_kept():
    world, kept = World(), CapturePolicy(answer=Capture.DIGEST_ONLY)
    done = again(record(agent_of(world), capture=kept), agent_of(world, answer="!"), capture=kept)
    assert done.divergence.kind is Kind.ANSWER
    assert done.divergence.differences[0].crossed.endswith("!")


def test_arguments_whose_digest_was_erased_are_said_to_be_uncompared():
    world = World()
    recording = record(agent_of(world))
    given = next(event for event in recording.events if event.type == "attempt.started").input_digest
    left = {key: content for key, content in recording.contents.items() if key != given}
    done = again(dataclasses.replace(recording, contents=left), agent_of(world))
    assert done.is_same
    assert done.uncompared == ("model/planner/1/1",)
    assert "arguments cannot be compared at model/planner/1/1" in str(done)


def test_a_record_that_stops_early_is_the_same_as_far_as_it_goes():
    world = World()
    recording = record(agent_of(world))
    for length in range(1, len(recording.events)):
        done = again(dataclasses.replace(recording, events=recording.events[:length]), agent_of(world))
        assert (done.is_same, done.is_cut) == (True, True), f"{length}: {done}"
        assert done.crossed_count == length


def test_boundaries_that_only_order_tells_apart_are_named():  # D7
    async def look(run, n):
        await asyncio.sleep(0.001)
        return n

    async def agent(harness):
        async with opened(harness) as run:
            await asyncio.gather(*(harness.tool(run, look)(n=n) for n in range(2)))

    done = again(record(agent), agent)
    assert done.is_same
    assert done.ambiguous == ("tool/look/2/1",)


def test_decoders_and_errors_make_what_the_code_knows_of_bytes_and_names():
    class NoIndex(Exception):
        pass

    async def ask(run):
        return Reply("fine", TokenUsage(1, 2))

    async def fails(run):
        raise NoIndex("logs-7")

    async def agent(harness):
        async with opened(harness) as run:
            reply = await harness.model(run, "planner", ask)
            with pytest.raises(NoIndex, match="logs-7"):
                await harness.tool(run, fails)()
            return type(reply), reply.text, reply.usage

    recording = record(agent)
    done = again(recording, agent, errors={"NoIndex": NoIndex})
    assert (done.is_same, done.result[0].__name__) == (True, "RecordedObject")
    decode = {"model": lambda data: Reply("decoded", TokenUsage(1, 2))}
    done = again(recording, agent, errors={"NoIndex": NoIndex}, decode=decode)
    assert (done.is_same, done.result) == (True, (Reply, "decoded", TokenUsage(1, 2)))


@pytest.mark.parametrize(
    ("raised", "caught"),
    [
        (KeyError("pod"), KeyError),
        (KeyError("pod"), LookupError),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), ValueError),
        (OSError(2, "no such file"), OSError),
        (ExceptionGroup("both", [ValueError("no")]), Exception),
        (type("StopIteration", (Exception,), {})("an application's own"), Exception),
        (StopAsyncIteration("no more"), StopAsyncIteration),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)
def test_what_failed_is_caught_as_it_was_and_says_what_it_said(raised, caught):
    def look(run):
        raise raised

    async def agent(harness):
        async with opened(harness) as run:
            try:
                await harness.tool(run, "look", look)
            except caught as error:
                await harness.tool(run, "say", print, args={"end": f"{type(error).__name__}: {error}"})

    outcome = again(record(agent), agent)
    assert outcome.verdict is Verdict.SAME, outcome


def test_a_decoder_that_raises_ends_the_re_execution_with_that():
    def refuse(data):
        raise LookupError("what is this")

    world = World()
    with pytest.raises(LookupError, match="what is this"):
        again(record(agent_of(world)), agent_of(world), decode={"tool": refuse})


def test_a_run_that_recovery_ended_is_the_same_as_far_as_it_goes():  # E7
    world = World()
    recording = record(agent_of(world))
    end = recording.events[-1].model_copy(update={"outcome": "FAILED", "reason": "HARNESS_LOST", "elapsed_us": None})
    done = again(dataclasses.replace(recording, events=[*recording.events[:9], end]), agent_of(world))
    assert (done.is_same, done.is_cut, done.crossed_count) == (True, True, 9), str(done)
    assert str(done).startswith("same, as far as the record goes")


def test_a_run_that_lost_its_ledger_is_the_same_as_far_as_it_goes():  # D1
    world = World()
    recorder = Recorder()

    async def agent(harness):
        async with opened(harness) as run:
            await harness.tool(run, world.look)(pattern="a")
            if harness is recorder.harness:
                recorder.journal.fail_with = LedgerUnavailable("the disk is full")
                asyncio.get_running_loop().call_later(0.1, setattr, recorder.journal, "fail_with", None)
            await harness.tool(run, world.look)(pattern="b")

    recording = recorder.record(agent)
    assert recording.events[-1].reason == "LEDGER_UNAVAILABLE"
    done = again(recording, agent)
    assert (done.is_same, done.is_cut) == (True, True), str(done)


def test_a_thread_of_the_code_is_waited_for_while_it_is_quiet_no_longer_than_allowed():
    timers = []

    async def agent(harness):
        async with opened(harness) as run:
            loop, woken = asyncio.get_running_loop(), asyncio.Event()

            def wake():
                with contextlib.suppress(RuntimeError):  # The loop has closed.
                    loop.call_soon_threadsafe(woken.set)

            timers.append(threading.Timer(0.1, wake))
            timers[-1].start()
            await woken.wait()
            await harness.tool(run, "look", lambda run: 1)

    recording = record(agent)
    assert again(recording, agent, quiet_s=5).is_same
    assert again(recording, agent, quiet_s=0.01).divergence.kind is Kind.MISSING
    for timer in timers:
        timer.join()


def test_what_works_on_threads_of_the_loop_is_waited_for():
    async def agent(harness):
        async with opened(harness) as run:
            text = await asyncio.to_thread(lambda: time.sleep(0.1) or "slow")
            await harness.tool(run, "look", lambda run, text: text, args={"text": text})

    assert again(record(agent), agent).is_same


async def test_it_refuses_to_block_a_loop_that_runs():
    recording = await asyncio.to_thread(record, agent_of(World()))
    with pytest.raises(RunningLoop):
        reexecute(recording, agent_of(World()))


def test_a_recording_begins_with_the_beginning_of_a_run():
    recording = record(agent_of(World()))
    with pytest.raises(InvalidInput, match=r"run\.started is the first"):
        Recording(recording.events[1:], recording.contents)
