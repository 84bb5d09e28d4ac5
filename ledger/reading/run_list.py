"""Lists of runs by any conditions, newest first. A page looks at no more rows than `SCAN_ROWS_MAX`.

One condition that has an index, or none, says in which order rows are looked at, some at a time, and the others are
checked on each; so the cost is that of the page where most rows fit, and bounded where hardly any does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from harness.ids import run_stream
from ledger.audit.signing.stored import StoredTree
from ledger.following.leaves import LeafQueries
from ledger.lists import RunLine, RunPage
from ledger.reading import query, views
from ledger.reading.cursor import RunCursor, unnamed
from ledger.run_filter import RunFilter
from ledger.schema import diagnosis_run, stream, tool_invocation
from ledger.texts import as_fts5, as_tsquery, terms_of

SCAN_ROWS_MAX = 20_000
"""Rows that are looked at for one page;"""
SCAN_ROWS = 500
"""so many at once."""
MATCHES_MAX = 5_000
"""Runs that a search by text finds, the newest ones; the other conditions pick out of these."""
MATCHES = {
    "sqlite": sa.text(
        "SELECT run_id FROM run_text_index JOIN run_text ON run_text.doc = run_text_index.rowid"
        " WHERE run_text_index MATCH :search ORDER BY run_text_index.rowid DESC LIMIT :matches_max"
    ).columns(sa.column("run_id", sa.Text)),
    "postgresql": sa.text(
        "SELECT run_id FROM run_text JOIN diagnosis_run USING (run_id)"
        " WHERE to_tsvector('simple', words) @@ to_tsquery('simple', :search)"
        " ORDER BY created_us DESC LIMIT :matches_max"
    ).columns(sa.column("run_id", sa.Text)),
}
SEARCHES = {"sqlite": as_fts5, "postgresql": as_tsquery}
ID_END = "~"
"""Comes after everything that an id may hold."""

_run = diagnosis_run.c
_EXACT = ("agent_flow", "agent", "agent_version", "actor", "environment", "session_id")
"""Conditions that are a column's value."""
_INDEXED = ("session_id", "actor", "agent", "environment")
"""Those that have an index in the order of the list; the first that is given is the one that is used."""

_NEWEST_FIRST = (_run.created_us.desc(), _run.run_id.desc())
_LINE_COLUMNS = (
    *query.SUMMARY_COLUMNS,
    *(
        _run[name]
        for name in (
            "agent",
            "agent_version",
            "actor",
            "environment",
            "labels",
            "outcome_reason",
            "degraded",
            "usage",
            "usage_unknown_count",
            "currency",
            "cost_unknown_count",
            "timeout_us",
            "ended_us",
            "elapsed_us",
            "feedback",
            "incidents",
        )
    ),
    stream.c.head_seq,
)
_LINES = (
    sa.select(*_LINE_COLUMNS)
    .select_from(
        query.RUNS_WITH_CONTENTS.join(stream, stream.c.stream_id == query.stream_of_run(diagnosis_run.c.run_id))
    )
    .where(_run.run_id.in_(sa.bindparam("run_ids", expanding=True)))
)


class Found(NamedTuple):
    """Runs that fit, and where to look on."""

    run_ids: Sequence[str]
    last: RunCursor | None
    """After which there may be more; None if there is nothing."""
    is_cut: bool


def run_page(
    connection: sa.Connection, leaf_queries: LeafQueries, wanted: RunFilter, limit: int, after: RunCursor | None
) -> RunPage:
    """A page of the runs that fit."""
    found = _find(connection, wanted, limit, after)
    lines = run_lines(connection, leaf_queries, found.run_ids)
    rows = tuple(lines[run_id] for run_id in found.run_ids)
    return RunPage(rows, None if found.last is None else found.last.encode(), found.is_cut)


def run_lines(connection: sa.Connection, leaf_queries: LeafQueries, run_ids: Sequence[str]) -> dict[str, RunLine]:
    """The lines of these runs."""
    if not run_ids:
        return {}
    newest = StoredTree(connection, leaf_queries).newest()
    checkpointed = 0 if newest is None else newest.size
    streams = [run_stream(run_id) for run_id in run_ids]
    found = connection.execute(leaf_queries.heads, {"stream_ids": streams})
    last_leaves = {row[0]: row[1] for row in found}
    rows = connection.execute(_LINES, {"run_ids": list(run_ids)}).mappings()
    return {
        row["run_id"]: views.line_of(
            row, is_checkpointed=last_leaves.get(run_stream(row["run_id"]), checkpointed) < checkpointed
        )
        for row in rows
    }


def _find(connection: sa.Connection, wanted: RunFilter, limit: int, after: RunCursor | None) -> Found:
    if wanted.text is not None:
        return _search(connection, wanted, limit, after)
    ordering, checked = _conditions(wanted, connection.dialect.name)
    statement = _looking(ordering, checked)
    found: list[RunCursor] = []
    looked_at, last = 0, after
    while looked_at < SCAN_ROWS_MAX:
        size = SCAN_ROWS if checked else limit + 1
        rows = connection.execute(_after(statement, last).limit(size)).all()
        for created_us, run_id, fits in rows:
            if fits and len(found) == limit:
                return Found([run.run_id for run in found], found[-1], is_cut=False)
            last = RunCursor(created_us, run_id)
            if fits:
                found.append(last)
        if len(rows) < size:
            return Found([run.run_id for run in found], None, is_cut=False)
        looked_at += size
    if wanted.session_prefix is not None and last is not None:
        found, last = unnamed(found, last, after)
    return Found([run.run_id for run in found], last, is_cut=True)


def _search(connection: sa.Connection, wanted: RunFilter, limit: int, after: RunCursor | None) -> Found:
    """The same among the newest `MATCHES_MAX` runs whose texts fit."""
    dialect = connection.dialect.name
    matches = MATCHES[dialect].bindparams(search=SEARCHES[dialect](terms_of(wanted.text)), matches_max=MATCHES_MAX)
    match_count: int = connection.execute(sa.select(sa.func.count()).select_from(matches.subquery())).scalar_one()
    ordering, checked = _conditions(wanted, dialect)
    conditions = (*ordering, *checked)
    statement = sa.select(_run.created_us, _run.run_id).where(_run.run_id.in_(sa.select(matches.subquery().c.run_id)))
    if conditions:
        # Each match is looked up by its id: no index of a condition is to lead elsewhere.
        statement = statement.where(sa.case((sa.and_(*conditions), 1), else_=0) == 1)
    in_order = statement.order_by((_run.created_us + 0).desc(), _run.run_id.desc())
    rows = connection.execute(_after(in_order, after).limit(limit + 1)).all()
    last = RunCursor(*rows[limit - 1]) if len(rows) > limit else None
    return Found([row.run_id for row in rows[:limit]], last, match_count == MATCHES_MAX)


def _looking(
    ordering: Sequence[sa.ColumnElement[bool]], checked: Sequence[sa.ColumnElement[bool]]
) -> sa.Select[tuple[int, str, Any]]:
    """Rows in the order of the list, each with whether it fits."""
    fits = sa.case((sa.and_(*checked), 1), else_=0) if checked else sa.literal(1)
    return sa.select(_run.created_us, _run.run_id, fits).where(*ordering).order_by(*_NEWEST_FIRST)


def _after(statement: sa.Select[Any], last: RunCursor | None) -> sa.Select[Any]:
    if last is None:
        return statement
    return statement.where(sa.tuple_(_run.created_us, _run.run_id) < sa.tuple_(last.created_us, last.run_id))


def _conditions(wanted: RunFilter, dialect: str) -> tuple[list[sa.ColumnElement[bool]], list[sa.ColumnElement[bool]]]:
    """What says which rows are looked at, and what is checked on each."""
    ordering: list[sa.ColumnElement[bool]] = []
    if wanted.from_us is not None:
        ordering.append(_run.created_us >= wanted.from_us)
    if wanted.to_us is not None:
        ordering.append(_run.created_us < wanted.to_us)
    exact = {name: value for name in _EXACT if (value := getattr(wanted, name)) is not None}
    leading = next((name for name in _INDEXED if name in exact), None)
    if leading is not None:
        ordering.append(_is(leading, exact.pop(leading)))
    if wanted.status == ("RUNNING",):
        # Of the few that have an owner there is an index.
        ordering.append(_run.run_id.in_(sa.select(stream.c.run_id).where(stream.c.owner_id.is_not(None))))
    return ordering, [*(_is(name, value) for name, value in exact.items()), *_checked(wanted, dialect)]


def _is(name: str, value: str) -> sa.ColumnElement[bool]:
    # A value has no collation, whatever its column's is.
    return _run[name] == sa.literal(value, sa.Text)


def _checked(wanted: RunFilter, dialect: str) -> list[sa.ColumnElement[bool]]:
    conditions: list[sa.ColumnElement[bool]] = []
    if wanted.session_prefix is not None:
        first, end = wanted.session_prefix, wanted.session_prefix + ID_END
        conditions.append(_run.session_id.between(sa.literal(first, sa.Text), sa.literal(end, sa.Text)))
    if wanted.status:
        conditions.append(_run.status.in_(wanted.status))
    conditions += [_run[name].is_(None) for name in wanted.without]
    if wanted.reason is not None:
        conditions.append(_run.outcome_reason == wanted.reason)
    if wanted.degraded is not None:
        conditions.append(_run.degraded == int(wanted.degraded))
    if wanted.feedback is not None:
        conditions.append(_feedback(wanted.feedback))
    if wanted.tool is not None:
        granted = sa.select(sa.literal(1)).where(
            tool_invocation.c.run_id == _run.run_id, tool_invocation.c.tool_name == wanted.tool
        )
        conditions.append(granted.exists())
    conditions += _labels(wanted.labels, dialect)
    return conditions


def _feedback(wanted: str) -> sa.ColumnElement[bool]:
    if wanted == "none":
        return _run.feedback.is_(None)
    useful: sa.ColumnElement[bool] = _run.feedback["useful"].as_boolean()
    return useful.is_(wanted == "useful")


def _labels(labels: Mapping[str, str], dialect: str) -> list[sa.ColumnElement[bool]]:
    # As rows, since a label's name may hold what means something in a path.
    each = sa.func.json_each_text if dialect == "postgresql" else sa.func.json_each
    conditions: list[sa.ColumnElement[bool]] = []
    for name, value in labels.items():
        label = each(_run.labels, type_=sa.Text).table_valued("key", "value")
        conditions.append(sa.select(sa.literal(1)).where(label.c.key == name, label.c.value == value).exists())
    return conditions
