"""`tachograph runs` and `tachograph show`: what a ledger holds, without changing it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from ledger.cli.common import (
    command,
    db_option,
    json_option,
    keys_of,
    one_line,
    print_json,
    span,
    table,
)
from ledger.cli.filtering import filter_of, filter_options
from ledger.reading.reader import LedgerReader
from ledger.records import RunDetail, RunTrace
from ledger.words.format import instant
from ledger.words.usage import known

QUERY_WIDTH = 48
PREVIEW_WIDTH = 100


@click.command()
@db_option
@filter_options
@click.option("--limit", default=20, show_default=True, help="How many.")
@click.option("--cursor", help="Where the next page begins, as the last one said.")
@json_option
@command
async def runs(db: str, limit: int, cursor: str | None, as_json: bool, **conditions: Any) -> None:
    """List runs, newest first: those of which all that is asked for holds."""
    wanted = filter_of(conditions)
    async with await LedgerReader.open(db) as reader:
        page = await reader.runs(wanted, limit, cursor)
        if wanted.session_id is not None and not page.rows:
            await reader.session(wanted.session_id)
    if as_json:
        print_json(page)
        return
    heading = ["RUN", "STATUS", "FLOW", "STEPS", "TOOLS", "CREATED", "QUERY"]
    rows = [
        [
            f"{run.session_id}/{run.run_id}",
            run.status,
            run.agent_flow or "-",
            str(run.step_count),
            str(run.tool_call_count),
            instant(run.created_us),
            one_line(run.query, QUERY_WIDTH),
        ]
        for run in page.rows
    ]
    click.echo(table([heading, *rows]) if rows else "no runs")
    if page.is_cut:
        click.echo("the search stopped at its bound; there may be more that fit")
    if page.next_cursor:
        click.echo(f"more: --cursor {page.next_cursor}")


@click.command()
@click.argument("run", metavar="SESSION/RUN")
@db_option
@json_option
@command
async def show(run: str, db: str, as_json: bool) -> None:
    """Show one run; both ids are needed, since a run is nobody's business but its session's."""
    session_id, run_id = keys_of(run)
    async with await LedgerReader.open(db) as reader:
        trace = await reader.trace(session_id, run_id)
    if as_json:
        print_json(trace)
    else:
        click.echo(render(trace))


def render(trace: RunTrace) -> str:
    """A trace as text."""
    run, summary = trace.run, trace.run.summary
    reason = f" ({run.outcome_reason})" if run.outcome_reason else ""
    lines = [
        f"run      {summary.session_id}/{summary.run_id}",
        f"status   {summary.status}{reason}{', degraded' if run.degraded else ''}",
        f"flow     {summary.agent_flow or '-'}",
        f"started  {instant(run.started_us)}, took {span(run.elapsed_us)}",
        f"query    {one_line(summary.query, PREVIEW_WIDTH)}",
        f"answer   {one_line(summary.answer_preview, PREVIEW_WIDTH)}",
        f"events   {run.event_count}, head {run.head_link}",
    ]
    lines += ["", table([["RESOURCE", "USED", "LIMIT"], *_usage(trace)])]
    if run.currency:
        prices = f", by the prices {run.price_table}" if run.price_table else ""
        lines.append(f"cost_micros are millionths of {run.currency}{prices}")
    for what, number in (("usage", run.usage_unknown_count), ("cost", run.cost_unknown_count)):
        if number:
            lines.append(f"attempts of unknown {what}: {number}")
    if run.incidents:
        lines.append(", ".join(f"{name.replace('_', ' ')}: {count}" for name, count in sorted(run.incidents.items())))
    if run.refused:
        lines.append(f"refused: {', '.join(f'{name} {value}' for name, value in run.refused.items())}")
    if trace.agent_steps:
        steps = [["STEP", "NAME", "STATUS", "ATTEMPTS", "TIME", "TOKENS", "OUTPUT"]]
        for step in trace.agent_steps:
            tokens = f"{_count(step.input_tokens)} in, {_count(step.output_tokens)} out"
            output = one_line(step.output.text if step.output else None, QUERY_WIDTH)
            cells = [str(step.step_no), step.name, step.status, str(step.attempt_count), span(step.duration_us)]
            steps.append([*cells, tokens, output])
        lines += ["", table(steps)]
    if trace.tool_invocations:
        tools = [["TOOL", "NAME", "STATUS", "TIME", "INPUT", "OUTPUT"]]
        for tool in trace.tool_invocations:
            given = one_line(tool.input.text if tool.input else None, QUERY_WIDTH)
            output = one_line(tool.output.text if tool.output else None, QUERY_WIDTH)
            tools.append([str(tool.invocation_no), tool.tool_name, tool.status, span(tool.duration_us), given, output])
        lines += ["", table(tools)]
    lines += _orchestration(trace)
    return "\n".join(lines)


def _usage(trace: RunTrace) -> Iterator[list[str]]:
    run = trace.run
    for name in sorted(run.limits.keys() | run.observed_limits.keys() | run.usage.keys()):
        if name != "tool_default":
            open_part = f" ({run.reserved[name]} reserved)" if name in run.reserved else ""
            yield [name, f"{known(run, name, str(run.usage.get(name, 0)))}{open_part}", _limit(run, name)]


def _limit(run: RunDetail, name: str) -> str:
    """The limit of its own, else what is only observed, else for a tool what holds for those without one."""
    if name in run.observed_limits and name not in run.limits:
        return f"{run.observed_limits[name]} (only observed)"
    default = run.limits.get("tool_default", "-") if name.startswith("tool:") else "-"
    return str(run.limits.get(name, default))


def _orchestration(trace: RunTrace) -> list[str]:
    graph = trace.run.orchestration_trace
    if graph is None:
        return []
    path = " > ".join(transition["to"] for transition in graph["transitions"])
    more = f" … ({graph['transitionCount']} transitions)" if graph["truncated"] else ""
    return ["", f"graph    {path}{more}; ended in {graph['finalNode'] or '-'} ({graph['terminationReason'] or '-'})"]


def _count(tokens: int | None) -> str:
    return "?" if tokens is None else str(tokens)
