"""The runs of one session that belong together: what a run is part of, what it continues, and what came of it (E11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ledger.errors import RunNotFound
from ledger.schema import diagnosis_run as run

RELATED_MAX = 20
"""Runs of each kind that are named; further ones are counted."""

_session_id, _run_id = sa.bindparam("session_id", type_=sa.Text), sa.bindparam("run_id", type_=sa.Text)


@dataclass(frozen=True, slots=True)
class Runs:
    """Some runs, the oldest first."""

    named: tuple[tuple[str, str], ...]
    """The id and the status of each, `RELATED_MAX` at most."""
    count: int
    """How many there are."""


@dataclass(frozen=True, slots=True)
class Related:
    """The runs of its own session that a run has to do with; of other sessions nothing is said."""

    known: frozenset[str]
    """Which of the runs that it is said to be part of, and to continue, there are in its session."""
    children: Runs
    """Those that are part of it,"""
    continued_by: Runs
    """and those that continue it."""


def _by(column: sa.Column[Any]) -> tuple[sa.Select[Any], sa.Select[Any]]:
    """The first runs that name this one there, and how many do; by the index of the session's runs."""
    condition = (run.c.session_id == _session_id) & (column == _run_id)
    first = sa.select(run.c.run_id, run.c.status).where(condition).order_by(run.c.created_us, run.c.run_id)
    return first.limit(RELATED_MAX), sa.select(sa.func.count()).select_from(run).where(condition)


_CHILDREN, _CONTINUED_BY = _by(run.c.parent_run_id), _by(run.c.continues_run_id)
_NAMED = sa.select(run.c.parent_run_id, run.c.continues_run_id).where(
    run.c.session_id == _session_id, run.c.run_id == _run_id
)
_KNOWN = sa.select(run.c.run_id).where(
    run.c.session_id == _session_id, run.c.run_id.in_(sa.bindparam("run_ids", expanding=True))
)


def related(connection: sa.Connection, keys: dict[str, Any]) -> Related:
    """Those of a run; `RunNotFound` unless it is that session's."""
    values = {name: keys[name] for name in ("session_id", "run_id")}
    own = connection.execute(_NAMED, values).one_or_none()
    if own is None:
        raise RunNotFound(keys["session_id"], keys["run_id"])
    wanted = [run_id for run_id in own if run_id is not None]
    found = connection.execute(_KNOWN, values | {"run_ids": wanted}).scalars() if wanted else ()
    return Related(frozenset(found), _runs(connection, _CHILDREN, values), _runs(connection, _CONTINUED_BY, values))


def _runs(connection: sa.Connection, statements: tuple[sa.Select[Any], sa.Select[Any]], values: dict[str, Any]) -> Runs:
    first, count = statements
    named = tuple((row.run_id, row.status) for row in connection.execute(first, values))
    if len(named) < RELATED_MAX:
        return Runs(named, len(named))
    return Runs(named, int(connection.execute(count, values).scalar_one()))
