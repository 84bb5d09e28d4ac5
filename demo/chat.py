"""One question and its answer, in a run of its own (SPEC R1, R2)."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from demo.agent import Agent
from demo.evaluation import CHAT_EVALUATION, evaluate_chat
from demo.graph import GraphAnswer, run_graph
from demo.memory import Turn, kept, recalled
from demo.model import Message, Trip, assistant, system, user
from demo.prompts import CHAT
from demo.router import Flow, choose_flow
from demo.text import paragraphs
from harness import RunContext
from harness.adapters.asgi import Receive

TURNS_REMEMBERED = "turns_remembered"
"""The label of a run that tells how many turns its conversation remembered when it began."""
UNAVAILABLE = "unavailable"
"""What it says where the conversation could not be read."""

Emit = Callable[[dict[str, Any]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """What a client is told of a run that succeeded."""

    session_id: str
    run_id: str
    flow: Flow
    text: str
    degraded: bool
    turns_remembered: int | None
    """Of the conversation, when the run began; None where it could not be read."""
    turn_kept: bool
    """Whether later runs of the session will hear of this one."""


async def answer_question(
    agent: Agent,
    session_id: str,
    question: str,
    *,
    started: Callable[[RunContext], object],
    receive: Receive | None = None,
    emit: Emit | None = None,
) -> ChatAnswer:
    """Answer within a new run; `started` is told of it as soon as it is recorded. `RunEnded` if it does not succeed.

    `receive` is that of the request whose client waits for the answer; `emit` is sent both ids at once.
    """
    turns = await recalled(agent.memory, session_id)
    conversation = conversation_of(turns or (), question)
    turn_count = None if turns is None else len(turns)
    labels = {TURNS_REMEMBERED: UNAVAILABLE if turn_count is None else str(turn_count)}
    async with agent.run(session_id, question, labels=labels, receive=receive) as run:
        started(run)
        if emit is not None:
            ids = {"sessionId": session_id, "runId": run.run_id}
            await emit({"type": "metadata", **ids, "turnsRemembered": turn_count})
        trip = agent.trip(run)
        flow = await choose_flow(trip.branch("intent_router"), conversation)
        agent.harness.select_flow(run, flow.value)
        if flow is Flow.CHAT_SIMPLE:
            answer = await _simple(trip.branch("chat"), conversation)
        else:
            answer = await run_graph(agent.graph, trip, conversation)
        agent.harness.answer(run, answer.text)
    if flow is Flow.CHAT_GRAPH:
        await _evaluated(agent, run, answer)
    is_kept = await kept(agent.memory, session_id, Turn(question, answer.text))
    return ChatAnswer(session_id, run.run_id, flow, answer.text, answer.degraded, turn_count, is_kept)


async def stream_answer(
    agent: Agent, session_id: str, question: str, emit: Emit, *, started: Callable[[RunContext], object]
) -> None:
    """Metadata with both ids first, the answer once its run is on record as a success, then done; else `RunEnded`."""
    answer = await answer_question(agent, session_id, question, started=started, emit=emit)
    for piece in paragraphs(answer.text):
        await emit({"type": "content", "data": piece})
    said = {"agentFlow": answer.flow.value, "degraded": answer.degraded, "turnKept": answer.turn_kept}
    await emit({"type": "done", "data": said})


async def clear_conversation(agent: Agent, session_id: str) -> None:
    """Later runs of the session hear nothing of earlier ones, which stay; an error if there is no such session.

    What cannot be forgotten is `MemoryUnavailable`, and then the record does not say that it was.
    """
    await agent.memory.forget(session_id)
    await agent.records.clear_context(session_id)


def conversation_of(turns: Sequence[Turn], question: str) -> tuple[Message, ...]:
    """The history as messages, the question last."""
    history = [message for turn in turns for message in (user(turn.question), assistant(turn.answer))]
    return (*history, user(question))


async def _evaluated(agent: Agent, run: RunContext, answer: GraphAnswer) -> None:
    """Record what the rules say of an answer that was to be drawn from evidence."""
    evaluation = evaluate_chat(answer.text, answer.results, degraded=answer.degraded)
    await agent.records.record_evaluation(
        run.session_id,
        run.run_id,
        evaluator=CHAT_EVALUATION,
        verdict=evaluation["verdict"],
        rationale=json.dumps(evaluation),
    )


async def _simple(trip: Trip, conversation: Sequence[Message]) -> GraphAnswer:
    """One model call, without a look at the machine."""
    return GraphAnswer(await trip.text("chat", [system(CHAT), *conversation]), degraded=False)
