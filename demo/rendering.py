"""A run's trace on a terminal: the question, the verdict, every step and tool in time, the answer."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from demo.inspection import TABLES, Inspection
from demo.text import json_object

INDENT_CELLS = 2
BAR_CELLS = 28
BAR_CELLS_MIN = 10
MARK_CELLS = 2
TIME_CELLS = 7
GAP_CELLS = 2
QUERY_CHARS = 100
STATUS_STYLES = {"SUCCESS": "bold green", "RUNNING": "bold blue"}
FAILED_STYLE = "bold red"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """A step or a tool on the time line."""

    start_us: int
    duration_us: int
    scope: str
    name: str
    note: str
    is_tool: bool
    failed: bool


def run_line(trace: Json, page: str) -> str:
    """One line that a program can read."""
    run = trace["run"]
    return (
        f"run sessionId={run['sessionId']} runId={run['runId']} status={run['status']} "
        f"steps={run['stepCount']} tools={run['toolCallCount']} trace={page}"
    )


def show_trace(console: Console, trace: Json, page: str) -> None:
    """The line, then the run for people."""
    console.print()
    console.print(Text(run_line(trace, page)), soft_wrap=True, highlight=False)
    console.print(Padding(Group(*_trace(trace, console.width - INDENT_CELLS)), (1, 0, 0, INDENT_CELLS)))


def _trace(trace: Json, width: int) -> Iterator[RenderableType]:
    run = trace["run"]
    yield Text(shown(run["query"] or "")[:QUERY_CHARS], style="bold")
    yield _verdict(run)
    if run["orchestrationTrace"]:
        steps = run["orchestrationTrace"]["transitions"]
        path = [str(step.get("to") or step.get("toNode")) for step in steps]
        yield Text(" → ".join(path), style="dim")
    yield Text()
    yield _timeline(sorted(_rows(trace), key=lambda row: row.start_us), run["elapsedUs"] or 1, width)
    yield Text()
    yield Markdown(shown(trace["answer"] or "There is no answer."), hyperlinks=False)


def _verdict(run: Json) -> Text:
    usage, limits = run["usage"], run["limits"]
    text = Text(f"{run['status']}", style=STATUS_STYLES.get(run["status"], FAILED_STYLE))
    said = [run["agentFlow"] or "no flow", seconds(run["elapsedUs"] or 0)]
    for key, noun in (("modelCalls", "model calls"), ("toolCalls", "tool calls"), ("totalTokens", "tokens")):
        said.append(f"{usage.get(key, 0):,} of {limits[key]:,} {noun}")
    if run["degraded"]:
        said.append("degraded")
    return text.append(" · " + " · ".join(said), style="not bold default")


def _rows(trace: Json) -> Iterator[Row]:
    for step in trace["agentSteps"]:
        tokens = f"{step['inputTokens'] or 0:,} in, {step['outputTokens'] or 0:,} out"
        attempts = f", {step['attemptCount']} attempts" if step["attemptCount"] > 1 else ""
        yield _row(step, step["name"], f"{tokens}{attempts}", is_tool=False)
    for tool in trace["toolInvocations"]:
        yield _row(tool, tool["toolName"], _arguments((tool["input"] or {}).get("text")), is_tool=True)


def _arguments(text: str | None) -> str:
    """What a tool was asked for: the words among its arguments."""
    given = json_object(text or "") or {}
    values = [word for value in given.values() for word in (value if isinstance(value, list) else [value])]
    return ", ".join(word for word in values if isinstance(word, str))


def _row(item: Json, name: str, note: str, *, is_tool: bool) -> Row:
    failed = item["status"] != "SUCCESS"
    told = f"{item['failure'] or item['status']}" if failed else note
    scope = str(item["scope"]).partition("/")[0]
    return Row(item["startedElapsedUs"], item["durationUs"] or 0, scope, name, shown(told), is_tool, failed)


def _timeline(rows: list[Row], elapsed_us: int, width: int) -> Table:
    """One line for each; where the terminal is narrow, first the note goes, then bars shrink, then scopes are cut."""
    name_cells = max((len(row.name) + MARK_CELLS for row in rows), default=0)
    left = width - name_cells - TIME_CELLS - 3 * GAP_CELLS
    scope_cells = max(0, min(max((len(row.scope) for row in rows), default=0), left - BAR_CELLS_MIN))
    bar_cells = max(0, min(BAR_CELLS, left - scope_cells))
    table = Table(box=None, padding=(0, GAP_CELLS, 0, 0), show_header=False, pad_edge=False)
    table.add_column(style="dim", width=scope_cells, no_wrap=True, overflow="ellipsis")
    table.add_column(width=name_cells, no_wrap=True, overflow="ellipsis")
    table.add_column(width=bar_cells, no_wrap=True, overflow="crop")
    table.add_column(justify="right", width=TIME_CELLS, no_wrap=True)
    note_cells = left - scope_cells - bar_cells - GAP_CELLS
    if note_cells > 0:
        table.add_column(style="dim", width=note_cells, no_wrap=True, overflow="ellipsis")
    told_scope = ""
    for row in rows:
        style = "red" if row.failed else "cyan" if row.is_tool else "blue"
        scope, told_scope = ("" if row.scope == told_scope else row.scope), row.scope
        name = Text("▪ " if row.is_tool else "● ", style=style).append(row.name, style="default")
        cells: list[RenderableType] = [
            Text(scope),
            name,
            Text(_bar(row, elapsed_us, bar_cells), style=style),
            seconds(row.duration_us),
        ]
        table.add_row(*cells, *([Text(row.note)] if note_cells > 0 else []))
    return table


def _bar(row: Row, elapsed_us: int, width: int) -> str:
    """Where in the run, and how long; what is too short to see is one thin line."""
    first = min(width - 1, row.start_us * width // elapsed_us)
    cells = min(width - first, row.duration_us * width // elapsed_us)
    return (" " * first + ("━" * cells or "╸")).ljust(width)


def show_inspection(console: Console, inspection: Inspection, names: dict[str, str]) -> None:
    """Rows by table and run, as counted in the file."""
    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("rows in the file")
    for run_id in inspection.run_ids:
        table.add_column(names.get(run_id, run_id), justify="right")
    table.add_column("of another run or session", justify="right")
    for name in TABLES:
        found = [inspection.of(name, run_id) for run_id in inspection.run_ids]
        foreign = sum(row.foreign_count for row in found)
        style = FAILED_STYLE if foreign else "green"
        table.add_row(name, *(f"{row.row_count:,}" for row in found), Text(str(foreign), style=style))
    console.print()
    console.print(Rule(f"session {inspection.session_id} in the ledger's file", align="left", style="dim"))
    console.print(Padding(table, (1, 0, 0, 2)))


def seconds(duration_us: int) -> str:
    """`12 ms`, `1.25 s`."""
    return f"{duration_us / 1000:.0f} ms" if duration_us < 1_000_000 else f"{duration_us / 1_000_000:.2f} s"


def shown(text: str) -> str:
    """Text that cannot steer the terminal: control characters are replaced, line ends stay."""
    return "".join(char if char.isprintable() or char == "\n" else "·" for char in text)
