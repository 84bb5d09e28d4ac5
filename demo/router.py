"""Where a question goes, decided before anything else: a plain answer, or the graph that looks at the machine (D17)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from demo.model import Message, ModelFailed, Trip, json_in, model_failures, system
from demo.prompts import ROUTE
from harness import FailureType, OperationKind, RunContext, TokenUsage, TypedFailure


class Flow(Enum):
    """Which way a run goes (SPEC R5)."""

    CHAT_SIMPLE = "CHAT_SIMPLE"
    CHAT_GRAPH = "CHAT_GRAPH"
    AI_OPS = "AI_OPS"


class Intent(BaseModel):
    """What the router is asked to answer with."""

    model_config = ConfigDict(frozen=True)

    intent: Literal["SIMPLE", "COMPLEX"]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Routed:
    """The model's choice, with what it cost."""

    intent: str
    reason: str
    usage: TokenUsage | None


async def choose_flow(trip: Trip, conversation: Sequence[Message]) -> Flow:
    """The model's choice, asked at most twice; where there is none, the graph, which can do without the model."""

    async def ask(run: RunContext, **asked: Any) -> Routed:
        reply = await trip.reply(run, **asked)
        try:
            choice = Intent.model_validate_json(json_in(reply.content))
        except ValidationError:
            problem = "the router's reply is not the JSON object it was asked for"
            raise TypedFailure(FailureType.MALFORMED_REPLY, problem, usage=reply.usage) from None
        return Routed(choice.intent, choice.reason, reply.usage)

    args = {"messages": [system(ROUTE), *conversation]}
    kind = OperationKind.INTENT_ROUTER
    try:
        with model_failures("router"):
            routed: Routed = await trip.harness.model(
                trip.run, "router", ask, args=args, kind=kind, model=trip.chat.model
            )
    except ModelFailed:
        return Flow.CHAT_GRAPH
    return Flow.CHAT_SIMPLE if routed.intent == "SIMPLE" else Flow.CHAT_GRAPH
