"""A check of the whole machine, told piece by piece as server-sent messages (SPEC R7)."""

import json
from collections.abc import Callable

from demo.agent import Agent
from demo.chat import Emit
from demo.evaluation import RULE_EVALUATION, RuleEvaluation, evaluate_report
from demo.graph import GraphAnswer
from demo.graph.fallback import MODEL_FAILED, plain_answer
from demo.graph.state import FALLBACK, TO_FALLBACK
from demo.investigation import investigate
from demo.memory import Turn, kept
from demo.model import ModelFailed, Trip, system, user
from demo.prompts import ANSWER, INVESTIGATE, WHOLE_MACHINE_CHECK
from demo.router import Flow
from demo.text import paragraphs
from harness import RunContext


async def check_machine(
    agent: Agent, session_id: str, question: str | None, emit: Emit, *, started: Callable[[RunContext], object]
) -> None:
    """Metadata with both ids first, then the report, then done; `RunEnded` if the run does not succeed."""
    asked = asked_of(question)
    async with agent.run(session_id, question or WHOLE_MACHINE_CHECK, flow=Flow.AI_OPS.value) as run:
        started(run)
        await emit({"type": "metadata", "sessionId": session_id, "runId": run.run_id})
        trip = agent.trip(run)
        report = await _report(trip, asked)
        evaluation = await _evaluated(trip, report)
        agent.harness.answer(run, report.text)
        for piece in paragraphs(report.text):
            await emit({"type": "content", "data": piece})
    await agent.records.record_evaluation(
        session_id,
        run.run_id,
        evaluator=RULE_EVALUATION,
        verdict=evaluation["verdict"],
        rationale=json.dumps(evaluation),
    )
    await kept(agent.memory, session_id, Turn(asked, report.text))
    await emit({"type": "done", "data": {"degraded": report.degraded}})


def asked_of(question: str | None) -> str:
    """What the model is asked, and what the conversation remembers of it."""
    return WHOLE_MACHINE_CHECK if question is None else f"{question}\n\n{WHOLE_MACHINE_CHECK}"


async def _report(trip: Trip, question: str) -> GraphAnswer:
    """Look at everything and write the report; where the model fails, what the tools had found by then (SPEC R11)."""
    found = await investigate(trip.branch("inspector"), [user(question)], prompt=INVESTIGATE, step="inspector")
    try:
        if found.failure is not None:
            raise found.failure
        text = await trip.branch("reporter").text("reporter", [system(ANSWER), user(question), *found.messages])
    except ModelFailed:
        if not any(result.evidence_count for result in found.results):
            raise
        # A check has no graph: the fallback is all of it that is entered.
        trip.harness.transition(trip.run, None, FALLBACK, cause=TO_FALLBACK)
        trip.harness.finish_graph(trip.run, final_node=FALLBACK, reason=MODEL_FAILED, degraded=True)
        return GraphAnswer(plain_answer(MODEL_FAILED, found.results), True, found.results)
    return GraphAnswer(text, False, found.results)


async def _evaluated(trip: Trip, report: GraphAnswer) -> RuleEvaluation:
    """The report, checked by rules."""

    def evaluate(run: RunContext) -> RuleEvaluation:
        return evaluate_report(report.text, report.results)

    return await trip.harness.guard(trip.branch("evaluation").run, RULE_EVALUATION, evaluate)
