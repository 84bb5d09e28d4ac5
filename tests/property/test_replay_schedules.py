"""Whatever the schedule was under which a run was recorded, executing it again comes to the same (SPEC D7)."""

import asyncio
import random
from dataclasses import replace

from harness import CancelReason, Harness, RunContext, ScopeExhausted, ScopeLimits, ToolCall
from harness import events as e
from harness.replay import Kind, Recording
from tests.harness.fakes import limits
from tests.harness.replays import Recorder, again, opened

SCHEDULES = 110


class Agent:
    """Branches that work side by side, each on what the one before it gave; where anything can take any time."""

    def __init__(self, seed: int, *, is_recorded: bool) -> None:
        self.chance = random.Random(seed)
        self.plan = random.Random(seed)
        self.is_recorded = is_recorded

    async def turns(self) -> None:
        for _ in range(self.chance.randrange(6)):
            await asyncio.sleep(0)

    async def look(self, run: RunContext, n: int) -> int:
        await self.turns()
        if n % 7 == 3:
            raise ValueError(f"{n} is none")
        return n + 1

    def on_thread(self, run: RunContext, n: int) -> int:
        return n * 2

    async def deep(self, run: RunContext, n: int) -> int:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.step(self.harness, run.branch(f"d{k}"), n + k)) for k in range(2)]
        return sum(task.result() for task in tasks)

    async def step(self, harness: Harness, run: RunContext, n: int) -> int:
        try:
            return await harness.tool(run, "look", self.look, args={"n": n})
        except ValueError:
            harness.transition(run, None, f"repair.{n % 3}")
            return n

    async def branch(self, run: RunContext, n: int) -> int:
        harness = self.harness
        n = await self.step(harness, run, n)
        results = await harness.tools(run, [ToolCall(self.look, {"n": n + k}) for k in range(3)])
        n += sum(result.value or 0 for result in results)
        n = await harness.model(run, "double", self.on_thread, args={"n": n})
        await asyncio.sleep(0)
        try:
            with harness.scope(run, "narrow", limits=ScopeLimits(tool_calls=2)) as narrow:
                for _ in range(3):
                    n = await self.step(harness, narrow, n)
        except ScopeExhausted:
            n += 1
        return await harness.tool(run, "deep", self.deep, args={"n": n})

    async def __call__(self, harness: Harness) -> None:
        self.harness = harness
        calls = self.plan.choice([1_000, 1_000, 25, 12])
        async with opened(harness, limits=limits(tool_calls=calls, per_tool_default=calls)) as run:
            if self.is_recorded and self.plan.random() < 0.3:
                asyncio.get_running_loop().call_later(self.plan.random() * 0.01, self.stop, run)
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self.branch(run.branch(f"b{k}"), 10 * k)) for k in range(3)]
            harness.answer(run, str(sum(task.result() for task in tasks)))

    def stop(self, run: RunContext) -> None:
        run.cancellation.signal(CancelReason.USER_REQUESTED)


def outcome_of(recording: Recording) -> str:
    end = recording.events[-1]
    assert isinstance(end, e.RunTerminated)
    return end.outcome


def recorded(seed: int) -> Recording:
    return Recorder().record(Agent(seed, is_recorded=True))


def test_a_run_recorded_under_any_schedule_is_executed_again_the_same():
    outcomes, orders = set(), set()
    for seed in range(SCHEDULES):
        recording = recorded(seed)
        done = again(recording, Agent(seed, is_recorded=False))
        assert done.is_same, f"schedule {seed}: {done}\n{done.error!r}"
        assert done.crossed_count + done.inside_count + done.others_count == len(recording.events)
        outcomes.add(outcome_of(recording))
        orders.add(tuple(getattr(event, "boundary", "") for event in recording.events))
    assert outcomes == {"SUCCESS", "CANCELLED", "BUDGET_EXHAUSTED"}
    assert len(orders) > SCHEDULES * 0.9


def test_a_record_that_was_changed_is_told_from_what_the_code_does():
    for seed in range(SCHEDULES // 2):
        recording, chance = recorded(seed), random.Random(seed)
        changed, kinds = mutated(recording, chance)
        done = again(changed, Agent(seed, is_recorded=False))
        assert done.divergence is not None, f"schedule {seed}: {kinds}"
        assert done.divergence.kind in kinds, f"schedule {seed}: {done}"


def mutated(recording: Recording, chance: random.Random) -> tuple[Recording, set[Kind]]:
    """The record with one boundary too many, or one too few, or other arguments; and what that may be told as."""
    events = list(recording.events)
    inside = tuple(f"{event.boundary}/" for event in events if isinstance(event, e.AttemptStarted))
    outside = [event for event in events if isinstance(event, e.AttemptStarted)]
    outside = [event for event in outside if not event.boundary.startswith(inside)]
    chosen = chance.choice([event for event in outside if "/batch/" not in event.boundary])
    at = events.index(chosen)
    # Of a run that was stopped, what a branch did last may as well not have been done yet.
    match chance.randrange(3 if outcome_of(recording) == "SUCCESS" else 2):
        case 0:
            events[at] = chosen.model_copy(update={"input_digest": "0" * 64, "input_bytes": 9_999})
            return replace(recording, events=events), {Kind.ARGUMENTS}
        case 1:
            fields = chosen.model_dump(include=set(e.RunEvent.model_fields) - {"type", "version"})
            fields |= {"boundary": "elsewhere/transition/nowhere/1/1", "to_node": "nowhere", "cause": "NEXT"}
            more = e.GraphTransitioned.model_validate(fields)
            return replace(recording, events=[*events[:at], more, *events[at:]]), {Kind.MISSING, Kind.EXTRA}
        case _:
            left = [event for event in events if getattr(event, "boundary", "") != chosen.boundary]
            return replace(recording, events=left), {Kind.EXTRA, Kind.MISSING}
