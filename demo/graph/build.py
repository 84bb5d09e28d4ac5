"""The graph itself, and one run through it. The run comes in LangGraph's own runtime context, explicitly (SPEC H1)."""

from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from demo.graph import nodes
from demo.graph.state import (
    COMPOSER,
    EVIDENCE_GUARD,
    EXECUTOR,
    FALLBACK,
    PLANNER,
    SEMANTIC_GUARD,
    GraphAnswer,
    State,
    Step,
    first_state,
)
from demo.model import Message, Trip

SUPERSTEPS_MAX = 12
"""More than the longest way through; LangGraph stops a graph that runs in circles."""

Node = Callable[[Trip, State], Awaitable[Step]]
Graph = CompiledStateGraph[State, Trip, State, State]

# Each node, and where it may lead.
NODES: dict[str, tuple[Node, tuple[str, ...]]] = {
    PLANNER: (nodes.planner, (EXECUTOR, FALLBACK)),
    EXECUTOR: (nodes.executor, (SEMANTIC_GUARD, FALLBACK)),
    SEMANTIC_GUARD: (nodes.semantic_guard, (EVIDENCE_GUARD, FALLBACK)),
    EVIDENCE_GUARD: (nodes.evidence_guard, (COMPOSER, EXECUTOR, FALLBACK)),
    COMPOSER: (nodes.composer, (FALLBACK, END)),
    FALLBACK: (nodes.fallback, (END,)),
}


def diagnosis_graph() -> Graph:
    """The compiled graph; one serves any number of runs."""
    graph = StateGraph(State, context_schema=Trip)
    for name, (work, leads_to) in NODES.items():
        graph.add_node(name, _recorded(name, work), destinations=leads_to)
    graph.add_edge(START, PLANNER)
    return graph.compile(name="diagnosis")


async def run_graph(graph: Graph, trip: Trip, conversation: tuple[Message, ...]) -> GraphAnswer:
    """From the entry to an answer; raises what ends the run."""
    state = await graph.ainvoke(first_state(conversation), {"recursion_limit": SUPERSTEPS_MAX}, context=trip)
    return GraphAnswer(state["answer"], state["degraded"], state["results"])


def _recorded(name: str, work: Node) -> Callable[..., Awaitable[Command[Any]]]:
    """`work` as a LangGraph node: its entry is recorded before it begins, in a scope named after node and superstep."""

    async def enter(state: State, config: RunnableConfig, runtime: Runtime[Trip]) -> Command[Any]:
        trip = runtime.context
        trip.harness.transition(trip.run, state["left"], name, cause=state["cause"])
        step = await work(trip.branch(f"{name}.{config['metadata']['langgraph_step']}"), state)
        return Command(goto=step.to or END, update={**step.changes, "left": name, "cause": step.cause})

    return enter
