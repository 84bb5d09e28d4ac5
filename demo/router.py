"""Where a question goes, decided before anything else: a plain answer, or the graph that looks at the machine (D17)."""

from collections.abc import Sequence
from enum import Enum

from demo.model import Message, ModelFailed, Trip, system
from demo.prompts import ROUTE
from harness import OperationKind


class Flow(Enum):
    """Which way a run goes (SPEC R5)."""

    CHAT_SIMPLE = "CHAT_SIMPLE"
    CHAT_GRAPH = "CHAT_GRAPH"
    AI_OPS = "AI_OPS"


async def choose_flow(trip: Trip, conversation: Sequence[Message]) -> Flow:
    """The model's choice, asked at most twice; where there is none, the graph, which can do without the model."""
    try:
        routed = await trip.choose(
            "router",
            [system(ROUTE), *conversation],
            field="intent",
            among=("SIMPLE", "COMPLEX"),
            kind=OperationKind.INTENT_ROUTER,
        )
    except ModelFailed:
        return Flow.CHAT_GRAPH
    return Flow.CHAT_SIMPLE if routed.picked == "SIMPLE" else Flow.CHAT_GRAPH
