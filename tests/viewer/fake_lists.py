"""The lists of a reader over runs held in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TypeVar

from ledger.errors import InvalidCursor
from ledger.lists import Attention, RunLine, RunPage, RunValues, SessionLine, SessionPage, Tallies
from ledger.reading.tallying import TalliedRun, most_urgent, tally
from ledger.records import ChatSession
from ledger.run_filter import RunFilter
from tests.contract.listed import fits
from tests.viewer.fake_run import FakeRun

Row = TypeVar("Row")


class FakeLists:
    """Newest first; a cursor is the number of rows to skip."""

    def _held(self) -> Sequence[FakeRun]:
        """All runs there are."""
        raise NotImplementedError

    def _session_ids(self) -> Sequence[str]:
        raise NotImplementedError

    async def session(self, session_id: str) -> ChatSession:
        raise NotImplementedError

    async def runs(self, wanted: RunFilter | None = None, limit: int = 50, cursor: str | None = None) -> RunPage:
        wanted = wanted or RunFilter()
        newest = sorted(self._held(), key=lambda run: (run.started_us, run.run_id), reverse=True)
        lines = [(line_of(run), {tool.tool_name for tool in run.trace().tool_invocations}) for run in newest]
        rows, next_cursor = page_of([line for line, tools in lines if fits(line, tools, wanted)], limit, cursor)
        return RunPage(rows, next_cursor, is_cut=False)

    async def sessions(self, limit: int = 50, cursor: str | None = None, prefix: str | None = None) -> SessionPage:
        lines = [await self._session_line(one) for one in self._session_ids() if one.startswith(prefix or "")]
        lines.sort(key=lambda line: (line.last_active_us, line.session_id), reverse=True)
        rows, next_cursor = page_of(lines, limit, cursor)
        return SessionPage(rows, next_cursor, is_cut=False)

    async def tallies(self, since_us: int = 0) -> Tallies:
        runs = [run for run in self._held() if run.started_us >= since_us]
        tallied = [tallied_of(run) for run in runs]
        lines = {run.run_id: line_of(run) for run in runs}
        now_us = max((line.updated_us for line in lines.values()), default=0)
        attention = tuple(Attention(why, lines[run_id]) for why, run_id in most_urgent(tallied, now_us, 10))
        return Tallies(tally(tallied), attention, len(runs), is_cut=False)

    async def run_values(self, wanted: RunFilter | None = None) -> RunValues:
        wanted = wanted or RunFilter()
        held = [run for run in self._held() if run.session_id.startswith(wanted.session_prefix or "")]
        held = [run for run in held if wanted.session_id in (None, run.session_id)]
        runs = [line_of(run) for run in held]
        tools = {tool.tool_name for run in held for tool in run.trace().tool_invocations}

        def of(name: str) -> tuple[str, ...]:
            return tuple(sorted({str(value) for run in runs if (value := getattr(run, name)) is not None}))

        return RunValues(
            of("agent"),
            of("agent_version"),
            of("agent_flow"),
            of("actor"),
            of("environment"),
            tuple(sorted({name for run in runs for name in run.labels})),
            tuple(sorted(tools)),
            of("outcome_reason"),
            is_cut=False,
        )

    async def _session_line(self, session_id: str) -> SessionLine:
        session = await self.session(session_id)
        runs = sorted((run for run in self._held() if run.session_id == session_id), key=lambda run: run.started_us)
        facts = asdict(session)
        return SessionLine(**facts, run_count=len(runs), newest_run=line_of(runs[-1]) if runs else None)


def page_of(rows: Sequence[Row], limit: int, cursor: str | None) -> tuple[tuple[Row, ...], str | None]:
    """Some rows, and the cursor of those that come after them."""
    if cursor is not None and not cursor.isdigit():
        raise InvalidCursor(cursor)
    skipped = int(cursor or 0)
    return tuple(rows[skipped : skipped + limit]), str(skipped + limit) if len(rows) > skipped + limit else None


def line_of(run: FakeRun) -> RunLine:
    """What a list says of the run."""
    trace = run.trace()
    detail = trace.run
    return RunLine(
        **asdict(detail.summary),
        agent=detail.agent,
        agent_version=detail.agent_version,
        actor=detail.actor,
        environment=detail.environment,
        labels=detail.labels,
        outcome_reason=detail.outcome_reason,
        degraded=detail.degraded,
        input_tokens=detail.usage.get("input_tokens"),
        output_tokens=detail.usage.get("output_tokens"),
        usage_unknown_count=detail.usage_unknown_count,
        cost_micros=detail.usage.get("cost_micros"),
        currency=detail.currency,
        cost_unknown_count=detail.cost_unknown_count,
        timeout_us=detail.timeout_us,
        ended_us=detail.ended_us,
        elapsed_us=detail.elapsed_us,
        useful=(trace.feedback or {}).get("useful"),
        incidents=detail.incidents,
        event_count=detail.event_count,
        is_checkpointed=False,
    )


def tallied_of(run: FakeRun) -> TalliedRun:
    """What is added up of the run."""
    detail = run.trace().run
    return TalliedRun(
        run.run_id,
        detail.agent,
        detail.agent_version,
        detail.summary.status,
        detail.outcome_reason,
        detail.degraded,
        detail.summary.created_us,
        detail.timeout_us,
        detail.limits,
        detail.usage,
        detail.incidents,
        detail.currency,
        detail.usage_unknown_count,
        detail.cost_unknown_count,
    )
