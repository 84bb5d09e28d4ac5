"""Finds the runs and sessions whose rows are right, many at a time: a few statements for all that are short.

An engine reads what `reads` asks for, all as of one moment. What is not found to be right takes a closer look, one by
one, which says what differs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

from ledger.append.folding import fold
from ledger.errors import RunUnreadable, SessionUnreadable
from ledger.projections.rows import SessionShare
from ledger.rebuild import Kind, openings
from ledger.store import statements

GROUP_EVENTS = 1_000
"""Looked at together, and in memory at once. A longer stream is left to the closer look."""

Row = tuple[Any, ...]
Read = tuple[str, tuple[str, str]]
"""A statement and its two parameters."""


class Stream(NamedTuple):
    """A run's or session's stream."""

    stream_id: str
    key: str
    """The run's or session's id."""
    head_seq: int


def groups_of(streams: Iterable[Stream]) -> Iterator[Sequence[Stream]]:
    """What is looked at together; `streams` are in their order, with none left out, and so are the groups."""
    group: list[Stream] = []
    event_count = 0
    for stream in streams:
        event_count += stream.head_seq
        if group and event_count > GROUP_EVENTS:
            yield group
            group, event_count = [], stream.head_seq
        if event_count <= GROUP_EVENTS:
            group.append(stream)
        else:
            event_count = 0
    if group:
        yield group


def reads(kind: Kind, group: Sequence[Stream]) -> list[Read]:
    """What is to be read of the group, from its first to its last."""
    first, last = group[0], group[-1]
    bodies = (statements.BODIES_OF_STREAMS, (first.stream_id, last.stream_id))
    tables = statements.ROWS_OF_RUNS if kind == "run" else statements.ROWS_OF_SESSIONS
    return [bodies, *((read, (first.key, last.key)) for read in tables)]


def right_among(kind: Kind, group: Sequence[Stream], found: Sequence[Iterable[Row]]) -> dict[str, int]:
    """Those whose rows are right, with the number of their rows, by what was `found` for each of the reads."""
    by_stream = _by_key(found[0], 0)
    bodies = {stream.key: [body for _, body in by_stream[stream.stream_id]] for stream in group}
    return _right_runs(bodies, found[1:]) if kind == "run" else _right_sessions(bodies, *found[1:])


def _right_runs(bodies: dict[str, list[bytes]], found: Sequence[Iterable[Row]]) -> dict[str, int]:
    tables = [_by_key(rows, at) for rows, at in zip(found, statements.RUN_ID_AT, strict=True)]
    right: dict[str, int] = {}
    for run_id, of_run in bodies.items():
        try:
            _, changes = fold(run_id, None, of_run)
        except RunUnreadable:
            continue
        rows: list[list[Row]] = [
            [run.row for run in changes.runs.values()],
            list(changes.step_rows),
            list(changes.tool_rows),
            list(changes.cases.values()),
        ]
        if rows == [table[run_id] for table in tables]:
            right[run_id] = sum(len(table) for table in rows)
    return right


def _right_sessions(
    bodies: dict[str, list[bytes]], found: Iterable[Row], found_of_runs: Iterable[Row]
) -> dict[str, int]:
    rows, runs = _by_key(found, 0), _by_key(found_of_runs, 0)
    right: dict[str, int] = {}
    for session_id, of_session in bodies.items():
        try:
            shares = openings(session_id, of_session)
        except SessionUnreadable:
            continue
        shares += [SessionShare(*of_runs) for of_runs in runs[session_id]]
        wanted = [reduce(SessionShare.plus, shares).row] if shares else []
        if wanted == rows[session_id]:
            right[session_id] = len(wanted)
    return right


def _by_key(rows: Iterable[Row], at: int) -> defaultdict[str, list[Row]]:
    """The rows by their key, which is in them at that place."""
    by_key: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_key[row[at]].append(row)
    return by_key
