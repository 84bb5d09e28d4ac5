"""The list of all sessions, the one that was last active first. A page looks at no more rows than `SCAN_ROWS_MAX`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from ledger.following.leaves import LeafQueries
from ledger.lists import SessionLine, SessionPage
from ledger.reading import views
from ledger.reading.cursor import SessionCursor, unnamed
from ledger.reading.run_list import SCAN_ROWS, SCAN_ROWS_MAX, run_lines
from ledger.schema import chat_session, diagnosis_run

RUNS_COUNTED_MAX = 1_000
"""Runs of one session that are counted."""

_session = chat_session.c
_newest_run = (
    sa.select(diagnosis_run.c.run_id)
    .where(diagnosis_run.c.session_id == _session.session_id)
    .order_by(diagnosis_run.c.created_us.desc(), diagnosis_run.c.run_id.desc())
    .limit(1)
    .scalar_subquery()
)
_counted = (
    sa.select(diagnosis_run.c.run_id)
    .where(diagnosis_run.c.session_id == _session.session_id)
    .correlate(chat_session)
    .limit(RUNS_COUNTED_MAX)
    .subquery()
)
_run_count = sa.select(sa.func.count()).select_from(_counted).scalar_subquery()
_LOOKED_AT = sa.select(_session.last_active_us, _session.session_id).order_by(
    _session.last_active_us.desc(), _session.session_id.desc()
)
_LINES = sa.select(
    *(_session[name] for name in ("session_id", "message_pair_count", "created_us", "last_active_us", "expires_us")),
    _run_count.label("run_count"),
    _newest_run.label("newest_run_id"),
).where(_session.session_id.in_(sa.bindparam("session_ids", expanding=True)))


def session_page(
    connection: sa.Connection,
    leaf_queries: LeafQueries,
    prefix: str | None,
    limit: int,
    after: SessionCursor | None,
    now_us: int,
) -> SessionPage:
    """A page of the sessions whose ids begin so."""
    found, last, is_cut = _find(connection, prefix, limit, after)
    rows = {row["session_id"]: row for row in connection.execute(_LINES, {"session_ids": found}).mappings()}
    newest = [row["newest_run_id"] for row in rows.values() if row["newest_run_id"] is not None]
    runs = run_lines(connection, leaf_queries, newest)
    lines = []
    for session_id in found:
        row = rows[session_id]
        session = views.session_of(row, now_us)
        lines.append(
            SessionLine(
                session_id,
                session.status,
                session.message_pair_count,
                session.created_us,
                session.last_active_us,
                session.expires_us,
                row["run_count"],
                runs.get(row["newest_run_id"]),
            )
        )
    return SessionPage(tuple(lines), None if last is None else last.encode(), is_cut)


def _find(
    connection: sa.Connection, prefix: str | None, limit: int, after: SessionCursor | None
) -> tuple[Sequence[str], SessionCursor | None, bool]:
    """Sessions that fit, after which one there may be more, and whether the search was cut short."""
    found: list[SessionCursor] = []
    looked_at, last = 0, after
    size = limit + 1 if prefix is None else SCAN_ROWS
    while looked_at < SCAN_ROWS_MAX:
        rows = connection.execute(_after(last).limit(size)).all()
        for last_active_us, session_id in rows:
            fits = prefix is None or session_id.startswith(prefix)
            if fits and len(found) == limit:
                return [one.session_id for one in found], found[-1], False
            last = SessionCursor(last_active_us, session_id)
            if fits:
                found.append(last)
        if len(rows) < size:
            return [one.session_id for one in found], None, False
        looked_at += size
    if prefix is not None and last is not None:
        found, last = unnamed(found, last, after)
    return [one.session_id for one in found], last, True


def _after(last: SessionCursor | None) -> sa.Select[Any]:
    if last is None:
        return _LOOKED_AT
    place = sa.tuple_(_session.last_active_us, _session.session_id)
    return _LOOKED_AT.where(place < sa.tuple_(last.last_active_us, last.session_id))
