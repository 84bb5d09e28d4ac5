"""The complex chat: planner, executor, evidence guard, composer and fallback, as a LangGraph `StateGraph`."""

from demo.graph.build import diagnosis_graph, run_graph
from demo.graph.state import GraphAnswer

__all__ = ["GraphAnswer", "diagnosis_graph", "run_graph"]
