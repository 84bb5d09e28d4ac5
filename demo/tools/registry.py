"""The tools by name, with the arguments each accepts: what a model is offered, and what it may then call."""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic import ValidationError

from demo.bounds import TOOL_RESULT_BYTES_MAX
from demo.tools.arguments import (
    Arguments,
    HostMetricsArguments,
    NoArguments,
    PrometheusAlertsArguments,
    QueryDatabaseArguments,
    QueryPrometheusArguments,
    QueryPrometheusRangeArguments,
    SearchLogsArguments,
    SearchRunbooksArguments,
    SimilarCasesArguments,
    TopProcessesArguments,
)
from demo.tools.cases import similar_cases
from demo.tools.errors import InvalidArguments, ResultTooLarge, UnknownTool
from demo.tools.logs import search_logs
from demo.tools.metrics import host_metrics, top_processes
from demo.tools.prometheus import prometheus_alerts, query_prometheus, query_prometheus_range
from demo.tools.runbooks import search_runbooks
from demo.tools.sources import Sources
from demo.tools.sql import query_database
from demo.tools.time_of_day import current_time
from harness import RunContext, ToolRules


@dataclass(frozen=True, slots=True)
class Tool:
    """A plain function with `run` first, and what a model has to know to call it."""

    name: str
    description: str
    arguments: type[Arguments]
    function: Callable[..., Any]
    places: Callable[[Sources], Mapping[str, Any]] = lambda sources: {}
    """What the function takes of the sources, by keyword."""
    is_configured: Callable[[Sources], bool] = lambda sources: True
    """Whether the sources have what it cannot do without; else it is not offered."""
    effect: Literal["read"] = "read"

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the arguments."""
        return _schema_of(self.arguments)

    def bound(self, sources: Sources) -> Callable[..., Any]:
        """`call(run, **arguments)`: checks the arguments, calls the function, checks the size of the result.

        It is asynchronous where the function is, so that the end of the run interrupts it.
        """
        places = self.places(sources)
        if inspect.iscoroutinefunction(self.function):

            async def call_async(run: RunContext, /, **arguments: Any) -> Mapping[str, Any]:
                return self._sized(await self.function(run, **self._checked(arguments), **places))

            return call_async

        def call(run: RunContext, /, **arguments: Any) -> Mapping[str, Any]:
            return self._sized(self.function(run, **self._checked(arguments), **places))

        return call

    def _checked(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return dict(self.arguments.model_validate(arguments))
        except ValidationError as error:
            raise InvalidArguments(_what_is_wrong(self.name, error)) from None

    def _sized(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        size_bytes = len(json.dumps(result))
        if size_bytes > TOOL_RESULT_BYTES_MAX:
            raise ResultTooLarge(
                f"{self.name} found {size_bytes} bytes, more than {TOOL_RESULT_BYTES_MAX}; ask for less"
            )
        return result


@cache
def _schema_of(arguments: type[Arguments]) -> dict[str, Any]:
    """Made once, since each question to a model tells it of every tool."""
    return arguments.model_json_schema()


def _what_is_wrong(tool: str, error: ValidationError) -> str:
    problems = [f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}" for fault in error.errors()[:3]]
    return f"{tool} cannot be called so: {'; '.join(problems)}"


def _has_prometheus(sources: Sources) -> bool:
    return sources.prometheus_url is not None


TOOLS: tuple[Tool, ...] = (
    Tool(
        "host_metrics",
        "Live CPU, memory, swap, disk and load figures of this machine.",
        HostMetricsArguments,
        host_metrics,
        places=lambda sources: {"snapshot": sources.metrics_snapshot},
    ),
    Tool(
        "top_processes",
        "The processes of this machine that use the most CPU or memory now.",
        TopProcessesArguments,
        top_processes,
        places=lambda sources: {"snapshot": sources.metrics_snapshot},
    ),
    Tool(
        "search_logs",
        "Lines of this machine's log files that match a pattern, the newest first.",
        SearchLogsArguments,
        search_logs,
        places=lambda sources: {"folder": sources.log_folder},
    ),
    Tool(
        "search_runbooks",
        "Sections of the runbooks that fit a trouble: what to check and what to do.",
        SearchRunbooksArguments,
        search_runbooks,
        places=lambda sources: {"folder": sources.runbook_folder},
    ),
    Tool(
        "similar_cases",
        "Earlier questions like this one whose answers people found useful. They are of another time: no evidence.",
        SimilarCasesArguments,
        similar_cases,
        places=lambda sources: {"cases": sources.cases},
        is_configured=lambda sources: sources.cases is not None,
    ),
    Tool(
        "current_time",
        "The time of this machine now, in UTC and as its own clock shows it.",
        NoArguments,
        current_time,
        places=lambda sources: {"clock": sources.clock},
    ),
    Tool(
        "prometheus_alerts",
        "The alerts that are active in Prometheus, those that fire first.",
        PrometheusAlertsArguments,
        prometheus_alerts,
        places=lambda sources: {"url": sources.prometheus_url},
        is_configured=_has_prometheus,
    ),
    Tool(
        "query_prometheus",
        "What a PromQL expression gives now, in Prometheus.",
        QueryPrometheusArguments,
        query_prometheus,
        places=lambda sources: {"url": sources.prometheus_url},
        is_configured=_has_prometheus,
    ),
    Tool(
        "query_prometheus_range",
        "How a PromQL expression went over a time, in Prometheus: each series with its extremes and its points.",
        QueryPrometheusRangeArguments,
        query_prometheus_range,
        places=lambda sources: {"url": sources.prometheus_url, "clock": sources.clock},
        is_configured=_has_prometheus,
    ),
    Tool(
        "query_database",
        "What a reading SQL statement gives, in the database that this machine's operator named.",
        QueryDatabaseArguments,
        query_database,
        places=lambda sources: {"url": sources.sql_url},
        is_configured=lambda sources: sources.sql_engine is not None,
    ),
)


READ_ONLY = ToolRules(allow={tool.name for tool in TOOLS}, effects={"read"}, name="read_only")
"""The agent may look at the machine with these tools, and change nothing of it, whatever a model asks for."""


def tools_for(sources: Sources) -> tuple[Tool, ...]:
    """The tools that have what they need."""
    return tuple(tool for tool in TOOLS if tool.is_configured(sources))


def find_tool(name: str, sources: Sources) -> Tool:
    """The tool of that name, or `UnknownTool`, which names those that there are."""
    tools = tools_for(sources)
    for tool in tools:
        if tool.name == name:
            return tool
    raise UnknownTool(f"there is no tool {name[:64]!r}; there are {', '.join(tool.name for tool in tools)}")
