"""A check of the whole machine, told piece by piece as server-sent messages (SPEC R7)."""

import json
from collections.abc import Callable

from demo.agent import Agent
from demo.chat import Emit
from demo.evaluation import RULE_EVALUATION, RuleEvaluation, evaluate_report
from demo.investigation import investigate
from demo.memory import Turn, kept
from demo.model import Trip, system, user
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
        report, evaluation = await _report(agent.trip(run), asked)
        agent.harness.answer(run, report)
        for piece in paragraphs(report):
            await emit({"type": "content", "data": piece})
    await agent.records.record_evaluation(
        session_id,
        run.run_id,
        evaluator=RULE_EVALUATION,
        verdict=evaluation["verdict"],
        rationale=json.dumps(evaluation),
    )
    await kept(agent.memory, session_id, Turn(asked, report))
    await emit({"type": "done", "data": None})


def asked_of(question: str | None) -> str:
    """What the model is asked, and what the conversation remembers of it."""
    return WHOLE_MACHINE_CHECK if question is None else f"{question}\n\n{WHOLE_MACHINE_CHECK}"


async def _report(trip: Trip, question: str) -> tuple[str, RuleEvaluation]:
    """Look at everything, write the report, and check it by rules."""
    found = await investigate(trip.branch("inspector"), [user(question)], prompt=INVESTIGATE, step="inspector")
    if found.failure is not None:
        raise found.failure
    report = await trip.branch("reporter").text("reporter", [system(ANSWER), user(question), *found.messages])

    def evaluate(run: RunContext) -> RuleEvaluation:
        return evaluate_report(report, found.results)

    return report, await trip.harness.guard(trip.branch("evaluation").run, RULE_EVALUATION, evaluate)
