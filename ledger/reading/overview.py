"""What the newest runs add up to, and which values they have. No more rows than `RUNS_TALLIED_MAX` are looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
import sqlalchemy as sa

from ledger.following.leaves import LeafQueries
from ledger.lists import Attention, RunValues, Tallies
from ledger.reading.run_list import run_lines
from ledger.reading.tallying import TalliedRun, most_urgent, tally
from ledger.run_filter import RunFilter
from ledger.schema import diagnosis_run, stream

RUNS_TALLIED_MAX = 2_000
"""Runs that are added up, or whose values are collected; the newest ones."""
ATTENTION_MAX = 10
"""Runs that are named as those to look at first."""
VALUES_MAX = 200
"""Values of a kind that are offered."""

_run = diagnosis_run.c
_PLAIN = (
    "run_id",
    "agent",
    "agent_version",
    "status",
    "outcome_reason",
    "degraded",
    "created_us",
    "timeout_us",
    "currency",
    "usage_unknown_count",
    "cost_unknown_count",
)
_PACKED = ("limits", "usage", "incidents")
_TALLIED = (
    sa.select(*(_run[name] for name in _PLAIN), *(sa.cast(_run[name], sa.Text).label(name) for name in _PACKED))
    .where(_run.created_us >= sa.bindparam("since_us"))
    .order_by(_run.created_us.desc(), _run.run_id.desc())
    .limit(sa.bindparam("limit"))
)
_open_runs = sa.select(stream.c.run_id).where(stream.c.owner_id.is_not(None)).limit(sa.bindparam("limit"))
_STILL_RUNNING = sa.select(*_TALLIED.selected_columns).where(
    _run.run_id.in_(_open_runs), _run.created_us < sa.bindparam("since_us")
)
_VALUES = (
    sa.select(
        *(_run[name] for name in ("session_id", "agent", "agent_version", "agent_flow")),
        *(_run[name] for name in ("actor", "environment", "outcome_reason")),
        *(sa.cast(_run[name], sa.Text).label(name) for name in ("labels", "usage")),
    )
    .order_by(_run.created_us.desc(), _run.run_id.desc())
    .limit(sa.bindparam("limit"))
)


def tallies(connection: sa.Connection, leaf_queries: LeafQueries, since_us: int, now_us: int) -> Tallies:
    """Runs created since then, and those that are still running, added up."""
    found = connection.execute(_TALLIED, {"since_us": since_us, "limit": RUNS_TALLIED_MAX + 1}).mappings().all()
    is_cut = len(found) > RUNS_TALLIED_MAX
    newest = found[:RUNS_TALLIED_MAX]
    oldest_us = newest[-1]["created_us"] if is_cut else since_us
    older = connection.execute(_STILL_RUNNING, {"since_us": oldest_us, "limit": RUNS_TALLIED_MAX}).mappings()
    runs = [_tallied(row) for row in (*newest, *older)]
    urgent = most_urgent(runs, now_us, ATTENTION_MAX)
    lines = run_lines(connection, leaf_queries, [run_id for _, run_id in urgent])
    attention = tuple(Attention(reason, lines[run_id]) for reason, run_id in urgent)
    return Tallies(tally(runs), attention, len(runs), is_cut)


def run_values(connection: sa.Connection, wanted: RunFilter) -> RunValues:
    """What those of the newest runs have whose session the filter names; of other sessions nothing is said."""
    statement = _VALUES
    if wanted.session_id is not None:
        statement = statement.where(_run.session_id == sa.literal(wanted.session_id, sa.Text))
    found = connection.execute(statement, {"limit": RUNS_TALLIED_MAX + 1}).mappings().all()
    prefix = wanted.session_prefix or ""
    # So few begin with it, perhaps, that to look until there are enough would be to look at all.
    rows = [row for row in found[:RUNS_TALLIED_MAX] if row["session_id"].startswith(prefix)]

    def of(name: str) -> tuple[str, ...]:
        return _distinct(row[name] for row in rows)

    return RunValues(
        of("agent"),
        of("agent_version"),
        of("agent_flow"),
        of("actor"),
        of("environment"),
        _distinct(name for row in rows for name in _parsed(row["labels"])),
        _distinct(
            key.removeprefix("tool:") for row in rows for key in _parsed(row["usage"]) if key.startswith("tool:")
        ),
        of("outcome_reason"),
        len(found) > RUNS_TALLIED_MAX,
    )


def _tallied(row: Mapping[str, Any]) -> TalliedRun:
    facts = {name: row[name] for name in _PLAIN} | {name: _parsed(row[name]) for name in _PACKED}
    return TalliedRun(**{**facts, "degraded": bool(row["degraded"])})


def _parsed(text: str | None) -> Mapping[str, Any]:
    return {} if text is None else orjson.loads(text)


def _distinct(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(sorted({value for value in values if value is not None})[:VALUES_MAX])
