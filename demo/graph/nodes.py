"""The six nodes. Each gets its trip in a scope of its own, and says what to do next; none catches the run's end."""

from pydantic import BaseModel, ConfigDict, ValidationError

from demo.bounds import EVIDENCE_REPAIRS_MAX
from demo.graph.fallback import MODEL_FAILED, NO_EVIDENCE, plain_answer
from demo.graph.state import (
    COMPOSER,
    EVIDENCE_GUARD,
    EXECUTOR,
    FALLBACK,
    REPAIR,
    SEMANTIC_GUARD,
    TO_FALLBACK,
    State,
    Step,
)
from demo.investigation import call_tools, investigate, offered_tools
from demo.model import ModelFailed, Trip, json_in, system
from demo.prompts import ANSWER, INVESTIGATE, JUDGE, PLAN, with_plan
from demo.prompts import REPAIR as REPAIR_PROMPT
from demo.rules.results import parse_result
from harness import OperationKind, RunContext
from harness.adapters.openai import ToolCall

RELEVANT = "RELEVANT"


class Plan(BaseModel):
    """What the planner is asked to answer with."""

    model_config = ConfigDict(frozen=True)

    goal: str
    steps: list[str]


async def planner(trip: Trip, state: State) -> Step:
    """A plan from the model; one that cannot be read is done without, since the question itself says enough."""
    try:
        reply = await trip.ask("planner", [system(PLAN), *state["conversation"]], tools=offered_tools(trip.sources))
    except ModelFailed:
        return _fall_back(MODEL_FAILED)
    try:
        steps = tuple(Plan.model_validate_json(json_in(reply.content)).steps)
    except ValidationError:
        steps = ()
    return Step(EXECUTOR, changes={"plan": steps})


async def executor(trip: Trip, state: State) -> Step:
    """Tools, called by the model until it has enough; after a repair it is told to look wider."""
    repairs = state["cause"] == REPAIR
    found = await investigate(
        trip,
        [*state["conversation"], *state["messages"]],
        prompt=REPAIR_PROMPT if repairs else with_plan(INVESTIGATE, state["plan"]),
        kind=OperationKind.EVIDENCE_REPAIR if repairs else OperationKind.DIAGNOSIS_AGENT,
    )
    changes = {"messages": state["messages"] + found.messages, "results": state["results"] + found.results}
    if found.failure is not None:
        return _fall_back(MODEL_FAILED, **changes)
    return Step(SEMANTIC_GUARD, changes=changes)


async def semantic_guard(trip: Trip, state: State) -> Step:
    """Is the evidence about what was asked? The model judges, asked at most twice; unjudged, no answer is made of it.

    Where there is no evidence, there is nothing to judge.
    """
    if not _evidence_count(state):
        return Step(EVIDENCE_GUARD, changes={"is_relevant": False})
    try:
        judged = await trip.choose(
            SEMANTIC_GUARD,
            [system(JUDGE), *state["conversation"], *state["messages"]],
            field="verdict",
            among=(RELEVANT, "IRRELEVANT"),
            kind=OperationKind.SEMANTIC_GUARD,
        )
    except ModelFailed:
        return _fall_back(MODEL_FAILED)
    return Step(EVIDENCE_GUARD, changes={"is_relevant": judged.picked == RELEVANT})


async def evidence_guard(trip: Trip, state: State) -> Step:
    """Is there any evidence, and is it relevant? If not, one more look; then the fallback."""
    known = {"evidence_count": _evidence_count(state), "is_relevant": state["is_relevant"]}
    if await trip.harness.guard(trip.run, EVIDENCE_GUARD, _has_evidence, args=known):
        return Step(COMPOSER)
    if state["repair_count"] < EVIDENCE_REPAIRS_MAX:
        return Step(EXECUTOR, REPAIR, {"repair_count": state["repair_count"] + 1})
    return _fall_back(NO_EVIDENCE)


async def composer(trip: Trip, state: State) -> Step:
    """The answer, from the evidence."""
    try:
        answer = await trip.text("composer", [system(ANSWER), *state["conversation"], *state["messages"]])
    except ModelFailed:
        return _fall_back(MODEL_FAILED)
    trip.harness.finish_graph(trip.run, final_node=COMPOSER, reason="COMPOSED")
    return Step(None, changes={"answer": answer})


async def fallback(trip: Trip, state: State) -> Step:
    """An answer without the model: the figures and log lines as they are, measured now if nothing was."""
    results = state["results"]
    if not any(result.evidence_count for result in results):
        call = ToolCall("fallback_0", "host_metrics", "{}")
        (measured,) = await call_tools(trip, [call])
        results += (parse_result(call.name, call.arguments, measured),)
    trip.harness.finish_graph(trip.run, final_node=FALLBACK, reason=state["failure"], degraded=True)
    answer = plain_answer(state["failure"], results)
    return Step(None, changes={"answer": answer, "degraded": True, "results": results})


def _evidence_count(state: State) -> int:
    return sum(result.evidence_count for result in state["results"])


def _has_evidence(run: RunContext, evidence_count: int, is_relevant: bool) -> bool:
    return evidence_count > 0 and is_relevant


def _fall_back(failure: str, **changes: object) -> Step:
    return Step(FALLBACK, TO_FALLBACK, {"failure": failure, **changes})
