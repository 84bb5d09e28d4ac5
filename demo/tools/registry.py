"""The tools by name, with the arguments each accepts: what a model is offered, and what it may then call."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from demo.bounds import (
    LOG_MATCHES_SHOWN_MAX,
    LOG_PATTERN_CHARS_MAX,
    PROCESSES_SHOWN_MAX,
    RUNBOOK_HITS_MAX,
    TOOL_RESULT_BYTES_MAX,
)
from demo.tools.errors import InvalidArguments, ResultTooLarge, UnknownTool
from demo.tools.figures import SECTIONS, Section
from demo.tools.logs import search_logs
from demo.tools.metrics import host_metrics, top_processes
from demo.tools.runbooks import search_runbooks
from harness import RunContext, ToolRules

BUNDLED_RUNBOOKS = Path(__file__).parent.parent / "runbooks"


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the tools look; the model cannot choose another place."""

    log_folder: Path
    runbook_folder: Path = BUNDLED_RUNBOOKS
    metrics_snapshot: Path | None = None
    """Figures of a machine at one moment, as a file; None for this machine, now."""


class Arguments(BaseModel):
    """Arguments as a model supplies them: nothing unknown, nothing converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class HostMetricsArguments(Arguments):
    sections: Annotated[list[Section], Field(min_length=1, max_length=len(SECTIONS))] = Field(
        default=list(SECTIONS), description="What to measure; everything if left out."
    )


class TopProcessesArguments(Arguments):
    sort_by: Literal["cpu", "memory"] = Field(default="memory", description="What to rank processes by.")
    limit: int = Field(default=5, ge=1, le=PROCESSES_SHOWN_MAX, description="How many processes.")


class SearchLogsArguments(Arguments):
    pattern: str = Field(min_length=1, max_length=LOG_PATTERN_CHARS_MAX, description="What to find, in any case.")
    regex: bool = Field(default=False, description="Whether the pattern is an RE2 regular expression.")
    name_pattern: str = Field(
        default="*",
        min_length=1,
        max_length=100,
        description="Only files like this, for example `nginx*` or `*/error.log`.",
    )
    limit: int = Field(default=20, ge=1, le=LOG_MATCHES_SHOWN_MAX, description="How many lines to show.")


class SearchRunbooksArguments(Arguments):
    query: str = Field(min_length=1, max_length=500, description="What the trouble is, in plain words.")
    limit: int = Field(default=2, ge=1, le=RUNBOOK_HITS_MAX, description="How many runbooks.")


@dataclass(frozen=True, slots=True)
class Tool:
    """A plain function with `run` first, and what a model has to know to call it."""

    name: str
    description: str
    arguments: type[Arguments]
    function: Callable[..., Mapping[str, Any]]
    folder: Callable[[Sources], Path] | None = None
    """Which of the sources the function takes as `folder`, if any."""
    snapshot: Callable[[Sources], Path | None] | None = None
    """As `folder`, for `snapshot`."""
    effect: Literal["read"] = "read"

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the arguments."""
        return self.arguments.model_json_schema()

    def bound(self, sources: Sources) -> Callable[..., Mapping[str, Any]]:
        """`call(run, **arguments)`: checks the arguments, calls the function, checks the size of the result."""

        def call(run: RunContext, /, **arguments: Any) -> Mapping[str, Any]:
            try:
                checked = self.arguments.model_validate(arguments)
            except ValidationError as error:
                raise InvalidArguments(_what_is_wrong(self.name, error)) from None
            places: dict[str, Path | None] = {} if self.folder is None else {"folder": self.folder(sources)}
            if self.snapshot is not None:
                places["snapshot"] = self.snapshot(sources)
            result = self.function(run, **dict(checked), **places)
            size_bytes = len(json.dumps(result))
            if size_bytes > TOOL_RESULT_BYTES_MAX:
                raise ResultTooLarge(
                    f"{self.name} found {size_bytes} bytes, more than {TOOL_RESULT_BYTES_MAX}; ask for less"
                )
            return result

        return call


def _what_is_wrong(tool: str, error: ValidationError) -> str:
    problems = [f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}" for fault in error.errors()[:3]]
    return f"{tool} cannot be called so: {'; '.join(problems)}"


TOOLS: tuple[Tool, ...] = (
    Tool(
        "host_metrics",
        "Live CPU, memory, swap, disk and load figures of this machine.",
        HostMetricsArguments,
        host_metrics,
        snapshot=lambda sources: sources.metrics_snapshot,
    ),
    Tool(
        "top_processes",
        "The processes of this machine that use the most CPU or memory now.",
        TopProcessesArguments,
        top_processes,
        snapshot=lambda sources: sources.metrics_snapshot,
    ),
    Tool(
        "search_logs",
        "Lines of this machine's log files that match a pattern, the newest first.",
        SearchLogsArguments,
        search_logs,
        folder=lambda sources: sources.log_folder,
    ),
    Tool(
        "search_runbooks",
        "Sections of the runbooks that fit a trouble: what to check and what to do.",
        SearchRunbooksArguments,
        search_runbooks,
        folder=lambda sources: sources.runbook_folder,
    ),
)


READ_ONLY = ToolRules(effects={"read"}, name="read_only")
"""The agent may look at the machine, and change nothing of it, whatever tools it is given."""


def find_tool(name: str) -> Tool:
    """The tool of that name, or `UnknownTool`, which names those that there are."""
    for tool in TOOLS:
        if tool.name == name:
            return tool
    raise UnknownTool(f"there is no tool {name[:64]!r}; there are {', '.join(tool.name for tool in TOOLS)}")
