"""Reads a period, a page at a time: within one transaction, so that all of it is of one moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import orjson
import sqlalchemy as sa

from harness.ids import run_stream
from harness.state import RUNNING
from ledger.audit.report import statements
from ledger.audit.report.records import Key, LatestCheckpoint, Report, RunLine, Wanted
from ledger.audit.report.sampling import Sample
from ledger.audit.report.sheet import Sheet
from ledger.audit.report.tally import OUTCOMES, Tally
from ledger.audit.signing.stored import StoredTree
from ledger.errors import RunUnreadable
from ledger.following.leaves import LeafQueries
from ledger.reading import moment as reading

T = TypeVar("T")
Progress = Callable[[int, int], None]
"""Hears how many runs were read, and of how many."""

PAGE_RUNS = 200
"""Runs read at once,"""
PAGE_EVENTS = 1_000
"""and events."""
LISTED_MAX = 100
"""Runs without success that a report names; the sheet has all."""
SUMS = ("model_calls", "tool_calls", "input_tokens", "output_tokens", "total_tokens")


class Examined(Protocol):
    """The part of `ledger.LedgerReader` that a report uses."""

    async def in_one_moment(self, work: Callable[[sa.Connection, LeafQueries], T]) -> T:
        """Do it in a transaction that cannot write, and sees one moment."""


@dataclass(slots=True)
class _Gathered:
    tally: Tally = field(default_factory=Tally)
    run_count: int = 0
    open_count: int = 0
    usage: Counter[str] = field(default_factory=Counter)
    listed: list[RunLine] = field(default_factory=list)
    not_listed_count: int = 0
    keys: dict[str, Key] = field(default_factory=dict)


async def read_report(
    reader: Examined,
    wanted: Wanted,
    sample: Sample,
    sheet: Sheet,
    now_us: int,
    on_progress: Progress = lambda _done, _of: None,
) -> Report:
    """The period as it is at one moment; every run goes to `sheet` and is offered to `sample`."""

    def work(connection: sa.Connection, queries: LeafQueries) -> Report:
        gathered, tree = _Gathered(), StoredTree(connection, queries)
        for outcome in OUTCOMES:
            gathered.tally.count("outcomes", outcome, None, times=0)
        run_count = _count(connection, wanted)
        for page in _pages(connection, wanted):
            for run in _lines(connection, page, gathered.tally):
                _take(run, gathered)
                sheet.add(run)
                sample.offer(run)
            on_progress(gathered.run_count, run_count)
        _system(connection, wanted, gathered)
        return Report(
            ledger_id=reading.ledger_id(connection),
            made_us=now_us,
            event_count=tree.size(),
            wanted=wanted,
            run_count=gathered.run_count,
            open_count=gathered.open_count,
            figures=gathered.tally.figures(),
            usage=dict(gathered.usage),
            listed=tuple(gathered.listed),
            not_listed_count=gathered.not_listed_count,
            sample_seed=sample.seed,
            sample=sample.drawn(),
            keys=tuple(gathered.keys.values()),
            checkpoint=_checkpoint(tree),
            sheet_digest=sheet.digest,
        )

    return await reader.in_one_moment(work)


def _pages(connection: sa.Connection, wanted: Wanted) -> Iterator[Sequence[sa.RowMapping]]:
    """The runs of the period in the order in which they started."""
    statement = _of_agent(statements.RUNS, wanted)
    values = _first(wanted) | {"limit": PAGE_RUNS}
    while rows := connection.execute(statement, values).mappings().all():
        yield rows
        values |= {"created_us": rows[-1]["created_us"], "run_id": rows[-1]["run_id"]}


def _count(connection: sa.Connection, wanted: Wanted) -> int:
    """How many runs the period has."""
    return int(connection.execute(_of_agent(statements.RUN_COUNT, wanted), _first(wanted)).scalar_one())


def _of_agent(statement: sa.Select[Any], wanted: Wanted) -> sa.Select[Any]:
    if wanted.agent is not None:
        statement = statement.where(statements.OF_AGENT)
    if wanted.agent_version is not None:
        statement = statement.where(statements.OF_VERSION)
    return statement


def _first(wanted: Wanted) -> dict[str, Any]:
    """What is asked with, before any run is read."""
    return {
        "created_us": wanted.from_us,
        "run_id": "",
        "to_us": wanted.to_us,
        "agent": wanted.agent,
        "agent_version": wanted.agent_version,
    }


@dataclass(slots=True)
class _Incidents:
    """What the events of one run tell beside its row."""

    counts: Counter[str] = field(default_factory=Counter)
    asked_by: str | None = None

    def add(self, event_type: str, fields: dict[str, Any]) -> None:
        if event_type == "cancellation.requested":
            self.asked_by = self.asked_by or fields.get("actor")
        elif event_type == "content.erased":
            self.counts[event_type] += fields["content_count"] if fields["stage"] == "ROWS" else 0
        elif event_type != "policy.decided" or not fields["allowed"]:
            self.counts[event_type] += 1


def _lines(connection: sa.Connection, rows: Sequence[sa.RowMapping], tally: Tally) -> Iterator[RunLine]:
    """The runs of a page, each with what its events tell."""
    incidents: dict[str, _Incidents] = {}
    for stream_id, seq, event_type, body in _events(connection, [run_stream(row["run_id"]) for row in rows]):
        try:
            fields = orjson.loads(body)
            tally.run_event(event_type, fields)
            incidents.setdefault(stream_id, _Incidents()).add(event_type, fields)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise RunUnreadable(stream_id.removeprefix(run_stream("")), f"event {seq} is no {event_type}") from error
    for row in rows:
        yield _line(row, incidents.get(run_stream(row["run_id"]), _Incidents()))


def _events(connection: sa.Connection, stream_ids: Iterable[str]) -> Iterator[tuple[str, int, str, bytes]]:
    after: tuple[str, int] = ("", 0)
    fixed = {"stream_ids": list(stream_ids), "types": statements.NOTEWORTHY, "limit": PAGE_EVENTS}
    while True:
        rows = connection.execute(statements.EVENTS, fixed | {"stream_id": after[0], "seq": after[1]}).all()
        for stream_id, seq, event_type, body in rows:
            yield stream_id, seq, event_type, body
            after = (stream_id, seq)
        if len(rows) < PAGE_EVENTS:
            return


def _line(row: sa.RowMapping, incidents: _Incidents) -> RunLine:
    usage, counts = row["usage"], incidents.counts
    return RunLine(
        session_id=row["session_id"],
        run_id=row["run_id"],
        agent=row["agent"],
        agent_version=row["agent_version"],
        actor=row["actor"],
        environment=row["environment"],
        flow=row["agent_flow"],
        status=row["status"],
        reason=row["outcome_reason"],
        started_us=row["created_us"],
        ended_us=row["ended_us"],
        elapsed_us=row["elapsed_us"],
        degraded=row["degraded"],
        # Only a run's owner knows the time since its start; whoever ends a dead one's run leaves it out.
        recovered=int(row["ended_us"] is not None and row["elapsed_us"] is None),
        **{name: usage.get(name, 0) for name in (*SUMS, "cost_micros")},
        currency=row["currency"],
        usage_unknown=row["usage_unknown_count"],
        refused_by=(row["refused"] or {}).get("resource"),
        cancel_reason=row["cancel_reason"],
        cancel_asked_by=incidents.asked_by,
        hidden_retries=counts["hidden_retry.detected"],
        calls_denied=counts["policy.decided"],
        retries_refused=counts["retry.refused"],
        scopes_exhausted=counts["scope.exhausted"],
        limits_passed=counts["limit.would_reject"],
        contents_erased=counts["content.erased"],
        event_count=row["head_seq"],
        head_link=row["head_link"].hex(),
    )


def _take(run: RunLine, gathered: _Gathered) -> None:
    tally = gathered.tally
    gathered.run_count += 1
    gathered.open_count += run.status == RUNNING
    tally.count("outcomes", run.status, run.reason)
    tally.count("agents", run.agent, run.agent_version)
    if run.status == "BUDGET_EXHAUSTED":
        tally.count("limits_that_ended_runs", run.refused_by)
    if run.status == "TIMED_OUT":
        tally.count("limits_that_ended_runs", "time")
    if run.degraded:
        tally.count("degraded_runs", run.agent, run.flow)
    if run.recovered:
        tally.count("recovered_runs", run.status, run.reason)
    for name in SUMS:
        gathered.usage[name] += getattr(run, name)
    gathered.usage["usage_unknown"] += run.usage_unknown
    if run.currency is not None:
        gathered.usage[f"cost_micros:{run.currency}"] += run.cost_micros
    if run.status != "SUCCESS":
        if len(gathered.listed) < LISTED_MAX:
            gathered.listed.append(run)
        else:
            gathered.not_listed_count += 1


def _system(connection: sa.Connection, wanted: Wanted, gathered: _Gathered) -> None:
    """What was decided about the ledger: all of it for the keys, what is of the period for the figures."""
    last_seq = 0
    while page := reading.system_events(connection, last_seq, PAGE_EVENTS):
        last_seq = page[-1].seq
        for event in page:
            fields = event.fields
            if event.type in ("key.created", "key.rotated"):
                gathered.keys.pop(fields.get("replaced_key_id", ""), None)
                gathered.keys[fields["key_id"]] = Key(
                    fields["key_id"], fields["purpose"], fields["algorithm"], fields.get("fingerprint")
                )
            elif event.type == "key.revoked":
                gathered.keys.pop(fields["key_id"], None)
            if wanted.from_us <= event.occurred_us < wanted.to_us:
                gathered.tally.system_event(event.type, fields)


def _checkpoint(tree: StoredTree) -> LatestCheckpoint | None:
    origin = tree.newest_origin()
    latest = None if origin is None else tree.latest(origin)
    if latest is None:
        return None
    return LatestCheckpoint(latest.origin, latest.size, latest.root.hex(), latest.key_id, latest.created_us)
