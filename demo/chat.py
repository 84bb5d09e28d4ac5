"""One question and its answer, in a run of its own (SPEC R1, R2)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from demo.agent import Agent
from demo.graph import GraphAnswer, run_graph
from demo.memory import Turn
from demo.model import Message, Trip, assistant, system, user
from demo.prompts import CHAT
from demo.router import Flow, choose_flow
from harness import RunContext
from harness.adapters.asgi import Receive


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """What a client is told of a run that succeeded."""

    session_id: str
    run_id: str
    flow: Flow
    text: str
    degraded: bool


async def answer_question(
    agent: Agent,
    session_id: str,
    question: str,
    *,
    started: Callable[[RunContext], object],
    receive: Receive | None = None,
) -> ChatAnswer:
    """Answer within a new run; `started` is told of it as soon as it is recorded. `RunEnded` if it does not succeed.

    `receive` is that of the request whose client waits for the answer.
    """
    turns = await agent.memory.recall(session_id)
    conversation = conversation_of(turns, question)
    async with agent.run(session_id, question, receive=receive) as run:
        started(run)
        trip = agent.trip(run)
        flow = await choose_flow(trip.branch("intent_router"), conversation)
        agent.harness.select_flow(run, flow.value)
        if flow is Flow.CHAT_SIMPLE:
            answer = await _simple(trip.branch("chat"), conversation)
        else:
            answer = await run_graph(agent.graph, trip, conversation)
        agent.harness.answer(run, answer.text)
    await agent.memory.remember(session_id, Turn(question, answer.text))
    return ChatAnswer(session_id, run.run_id, flow, answer.text, answer.degraded)


def conversation_of(turns: Sequence[Turn], question: str) -> tuple[Message, ...]:
    """The history as messages, the question last."""
    history = [message for turn in turns for message in (user(turn.question), assistant(turn.answer))]
    return (*history, user(question))


async def _simple(trip: Trip, conversation: Sequence[Message]) -> GraphAnswer:
    """One model call, without a look at the machine."""
    return GraphAnswer(await trip.text("chat", [system(CHAT), *conversation]), degraded=False)
