"""A run's trace as it was just after one of its events.

The run's own row, and those of its steps and invocations that were still to change, are what the fold had made of them
by then; a row that was over is what it is today. Contents are given as they can be read today, since what was erased is
gone from every moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Protocol

import orjson
import sqlalchemy as sa

from ledger.audit.walking.replay import Moment
from ledger.projections.rows import RunRow, StepRow, ToolRow
from ledger.reading import views
from ledger.reading.parts import WorkLine
from ledger.reading.query import CONTENTS_OF_ATTEMPT
from ledger.records import AgentStep, ChatSession, ContentView, RunTrace, ToolInvocation
from ledger.schema import diagnosis_run

JSON_COLUMNS = frozenset(column.name for column in diagnosis_run.c if isinstance(column.type, sa.JSON))


class PastReader(Protocol):
    """The part of `ledger.LedgerReader` that the past is read with."""

    async def steps(self, session_id: str, run_id: str, after_no: int = ..., limit: int = ...) -> Sequence[AgentStep]:
        """The run's model steps after the one of that number, in order."""

    async def tools(
        self, session_id: str, run_id: str, after_no: int = ..., limit: int = ...
    ) -> Sequence[ToolInvocation]:
        """The run's tool invocations after the one of that number, in order."""

    async def contents(self, session_id: str, run_id: str, digests: Iterable[str]) -> Mapping[str, ContentView]:
        """Those of the run's contents that have these digests, by digest."""


async def overview_at(reader: PastReader, moment: Moment, session: ChatSession) -> RunTrace:
    """The run without its steps and invocations; the session is as it is today."""
    row: Any = _as_read(moment.run.row)
    contents = await reader.contents(*_keys(moment), views.digests_of_run(row))
    head: Any = {"head_seq": moment.seq, "head_link": bytes.fromhex(moment.event.link)}
    return RunTrace(
        chat_session=session,
        run=views.detail_of(row, head, contents),
        agent_steps=(),
        tool_invocations=(),
        self_evaluation=views.evaluation_of(row, contents),
        answer=contents.get(row["answer_digest"]),
        feedback=views.feedback_of(row, contents),
    )


async def steps_at(reader: PastReader, moment: Moment, after_no: int, limit: int) -> list[AgentStep]:
    """The model steps that had begun, after the one of that number."""
    count = min(limit, moment.run.step_count - after_no)
    if count < 1:
        return []
    open_rows = {step.step_no: _in_order(step.row, AgentStep) for step in moment.run.steps.values()}
    shown = [row for number, row in open_rows.items() if after_no < number <= after_no + count]
    contents = await reader.contents(*_keys(moment), set().union(*map(views.digests_of_attempt, shown)))
    return [
        views.step_of(open_rows[step.step_no], contents) if step.step_no in open_rows else step
        for step in await reader.steps(*_keys(moment), after_no, count)
    ]


async def tools_at(reader: PastReader, moment: Moment, after_no: int, limit: int) -> list[ToolInvocation]:
    """The tool invocations that had begun, after the one of that number."""
    count = min(limit, moment.run.tool_call_count - after_no)
    if count < 1:
        return []
    open_rows = {tool.invocation_no: _in_order(tool.row, ToolInvocation) for tool in moment.run.tools.values()}
    shown = [row for number, row in open_rows.items() if after_no < number <= after_no + count]
    contents = await reader.contents(*_keys(moment), set().union(*map(views.digests_of_attempt, shown)))
    return [
        views.tool_of(open_rows[tool.invocation_no], contents) if tool.invocation_no in open_rows else tool
        for tool in await reader.tools(*_keys(moment), after_no, count)
    ]


def _keys(moment: Moment) -> tuple[str, str]:
    return moment.run.state.session_id, moment.run.state.run_id


def _as_read(row: RunRow) -> dict[str, Any]:
    """The row as it comes back from its table."""
    return {
        name: orjson.loads(value) if name in JSON_COLUMNS and value is not None else value
        for name, value in row._asdict().items()
    }


def _in_order(row: StepRow | ToolRow, record: type[AgentStep | ToolInvocation]) -> list[Any]:
    """The columns in the order of the record's fields."""
    names = [field.name for field in fields(record)]
    return [getattr(row, f"{name}_digest" if name in CONTENTS_OF_ATTEMPT else name) for name in names]


def works_at(moment: Moment, works: Iterable[WorkLine]) -> list[WorkLine]:
    """Of all steps and invocations those that had begun, as they were."""
    run = moment.run
    begun = {"model": run.step_count, "tool": run.tool_call_count}
    still_open = {
        **{
            ("model", step.step_no): (step.status, step.duration_us, step.hidden_retry_count)
            for step in run.steps.values()
        },
        **{
            ("tool", tool.invocation_no): (tool.status, tool.duration_us, tool.hidden_retry_count)
            for tool in run.tools.values()
        },
    }
    found = []
    for work in works:
        if work.number <= begun[work.kind]:
            was = still_open.get((work.kind, work.number))
            if was is not None:
                work = work._replace(status=was[0], duration_us=was[1], hidden_retry_count=was[2])
            found.append(work)
    return found
