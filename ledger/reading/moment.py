"""What a reader asks for, read within one transaction: one moment of the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson
import sqlalchemy as sa

from harness.ids import SYSTEM_STREAM, check_id, run_stream
from ledger.errors import RunNotFound, SessionNotFound
from ledger.reading import query, views
from ledger.reading.cursor import RunCursor
from ledger.reading.parts import RunPart, WholeRun, WorkLine
from ledger.records import (
    AgentStep,
    ChatSession,
    ContentView,
    Page,
    RecordedEvent,
    RunSummary,
    RunTrace,
    ToolInvocation,
    UsefulCase,
)

PAGE_ROWS = 500
"""Rows of a run fetched at once,"""
PAGE_LINES = 2_000
"""without contents, of which a run may have many;"""
PAGE_DIGESTS = 400
"""and contents."""
NUMBER_AT = 2
"""Where a step and an invocation have their number."""

Keys = dict[str, Any]
"""`session_id`, `run_id` and `stream_id` of a run."""


def keys_of(session_id: str, run_id: str) -> Keys:
    """Those of a run; `InvalidInput` for what can be no id."""
    check_id("session_id", session_id)
    check_id("run_id", run_id)
    return {"session_id": session_id, "run_id": run_id, "stream_id": run_stream(run_id)}


def session(connection: sa.Connection, session_id: str, now_us: int) -> ChatSession:
    """The session as it is at `now_us`; `SessionNotFound` if there is none."""
    row = _first(connection, query.SESSION, {"session_id": session_id})
    if row is None:
        raise SessionNotFound(session_id)
    return views.session_of(row, now_us)


def session_runs(
    connection: sa.Connection, session_id: str, limit: int, after: RunCursor | None, now_us: int
) -> Page[RunSummary]:
    """A page of the session's runs; `SessionNotFound` if there is no such session."""
    statement = query.SESSION_RUNS if after is None else query.SESSION_RUNS_AFTER
    page = _page(connection, statement, {"session_id": session_id}, limit, after)
    if not page.rows:
        session(connection, session_id, now_us)
    return page


def recent_runs(connection: sa.Connection, limit: int, after: RunCursor | None) -> Page[RunSummary]:
    """A page of the runs of all sessions."""
    return _page(connection, query.RECENT_RUNS if after is None else query.RECENT_RUNS_AFTER, {}, limit, after)


def cases(connection: sa.Connection, limit: int) -> list[UsefulCase]:
    """The newest cases that may be learned from."""
    rows = connection.execute(query.CASES, {"limit": limit}).mappings()
    return [case for row in rows if (case := views.case_of(row)) is not None]


def trace(connection: sa.Connection, keys: Keys, now_us: int) -> RunTrace:
    """Exactly one run; `RunNotFound` unless it is that session's."""
    return _whole_trace(connection, keys, _head(connection, keys), now_us)


def whole(connection: sa.Connection, keys: Keys, now_us: int, events_max: int) -> WholeRun | None:
    """The run with its events; None where it has more than so many. `RunNotFound` as for `trace`."""
    head = _head(connection, keys)
    if head["head_seq"] > events_max:
        return None
    trace = _whole_trace(connection, keys, head, now_us)
    return WholeRun(trace, _events(connection, keys["stream_id"], 0, events_max))


def overview(connection: sa.Connection, keys: Keys, now_us: int) -> RunTrace:
    """The run without its steps and tools; `RunNotFound` as for `trace`."""
    return _trace(connection, keys, _head(connection, keys), now_us, (), ())


def part(connection: sa.Connection, keys: Keys, now_us: int, steps_after: int, tools_after: int, limit: int) -> RunPart:
    """A page of the run's steps and one of its invocations, and a line of each; `RunNotFound` as for `trace`."""
    head = _head(connection, keys)
    steps = _numbered(connection, query.STEPS, keys, steps_after, limit)
    tools = _numbered(connection, query.TOOLS, keys, tools_after, limit)
    works = [*_lines(connection, query.STEP_LINES, keys), *_lines(connection, query.TOOL_LINES, keys)]
    return RunPart(_trace(connection, keys, head, now_us, steps, tools), works)


def steps(connection: sa.Connection, keys: Keys, after_no: int, limit: int) -> list[AgentStep]:
    """The run's model steps after a number; `RunNotFound` as for `trace`."""
    rows, contents = _works(connection, query.STEPS, keys, after_no, limit)
    return [views.step_of(row, contents) for row in rows]


def tools(connection: sa.Connection, keys: Keys, after_no: int, limit: int) -> list[ToolInvocation]:
    """The run's tool invocations after a number; `RunNotFound` as for `trace`."""
    rows, contents = _works(connection, query.TOOLS, keys, after_no, limit)
    return [views.tool_of(row, contents) for row in rows]


def status(connection: sa.Connection, keys: Keys) -> str:
    """How the run stands; `RunNotFound` as for `trace`."""
    row = _first(connection, query.RUN, keys)
    if row is None:
        raise RunNotFound(keys["session_id"], keys["run_id"])
    return str(row["status"])


def events(connection: sa.Connection, keys: Keys, after_seq: int, limit: int) -> list[RecordedEvent]:
    """The run's events after a position; `RunNotFound` as for `trace`."""
    _head(connection, keys)
    return _events(connection, keys["stream_id"], after_seq, limit)


def contents(connection: sa.Connection, keys: Keys, digests: Iterable[str]) -> dict[str, ContentView]:
    """Those of the run's contents that have these digests; `RunNotFound` as for `trace`."""
    _head(connection, keys)
    return _contents(connection, keys["stream_id"], digests)


def salts(connection: sa.Connection, keys: Keys, digests: Iterable[str]) -> dict[str, bytes]:
    """The salts of those contents of the run that were not erased; `RunNotFound` as for `trace`."""
    _head(connection, keys)
    wanted = sorted(digests)
    found: dict[str, bytes] = {}
    for start in range(0, len(wanted), PAGE_DIGESTS):
        values = {"stream_id": keys["stream_id"], "digests": wanted[start : start + PAGE_DIGESTS]}
        rows = connection.execute(query.SALTS, values).all()
        found |= {digest: bytes(salt) for digest, salt in rows if salt is not None}
    return found


def system_events(connection: sa.Connection, after_seq: int, limit: int) -> list[RecordedEvent]:
    """The events of the ledger's own stream after a position."""
    return _events(connection, SYSTEM_STREAM, after_seq, limit)


def ledger_id(connection: sa.Connection) -> str:
    """What the ledger calls itself, for ever."""
    return str(connection.execute(query.LEDGER_ID).scalar_one())


def runs_open(connection: sa.Connection) -> int:
    """Runs that somebody owns, be he alive or dead."""
    return int(connection.execute(query.RUNS_OPEN).scalar_one())


def erased_runs(connection: sa.Connection, after: tuple[str, int], limit: int) -> list[tuple[str, int, str]]:
    """Runs of which content was erased, where each was told, and by which erasure; after a stream and a position."""
    values = {"stream_id": after[0], "after_seq": after[1], "limit": limit}
    rows = connection.execute(query.ERASED_RUNS, values)
    return [(run_id, seq, orjson.loads(body)["erasure_id"]) for run_id, seq, body in rows]


def _whole_trace(connection: sa.Connection, keys: Keys, head: views.Row, now_us: int) -> RunTrace:
    steps, tools = _all(connection, query.STEPS, keys), _all(connection, query.TOOLS, keys)
    return _trace(connection, keys, head, now_us, steps, tools)


def _trace(
    connection: sa.Connection,
    keys: Keys,
    head: views.Row,
    now_us: int,
    steps: Sequence[views.Fields],
    tools: Sequence[views.Fields],
) -> RunTrace:
    row = _first(connection, query.RUN, keys)
    if row is None:
        raise RunNotFound(keys["session_id"], keys["run_id"])
    digests = views.digests_of_run(row).union(*map(views.digests_of_attempt, (*steps, *tools)))
    contents = _contents(connection, keys["stream_id"], digests)
    return RunTrace(
        chat_session=session(connection, keys["session_id"], now_us),
        run=views.detail_of(row, head, contents),
        agent_steps=tuple(views.step_of(step, contents) for step in steps),
        tool_invocations=tuple(views.tool_of(tool, contents) for tool in tools),
        self_evaluation=views.evaluation_of(row, contents),
        answer=contents.get(row["answer_digest"]),
        feedback=views.feedback_of(row, contents),
    )


def _events(connection: sa.Connection, stream_id: str, after_seq: int, limit: int) -> list[RecordedEvent]:
    rows = connection.execute(query.EVENTS, {"stream_id": stream_id, "after_seq": after_seq, "limit": limit})
    return [views.event_of(row) for row in rows.mappings()]


def _head(connection: sa.Connection, keys: Keys) -> views.Row:
    head = _first(connection, query.RUN_STREAM, keys)
    if head is None:
        raise RunNotFound(keys["session_id"], keys["run_id"])
    return head


def _page(
    connection: sa.Connection, statement: sa.Select[Any], values: dict[str, Any], limit: int, after: RunCursor | None
) -> Page[RunSummary]:
    values = {**values, "limit": limit + 1}
    if after is not None:
        values |= {"created_us": after.created_us, "run_id": after.run_id}
    found = connection.execute(statement, values).mappings().all()
    rows = tuple(views.summary_of(row) for row in found[:limit])
    is_last = len(found) <= limit
    return Page(rows, None if is_last else RunCursor(rows[-1].created_us, rows[-1].run_id).encode())


def _first(connection: sa.Connection, statement: sa.Select[Any], values: dict[str, Any]) -> views.Row | None:
    return connection.execute(statement, values).mappings().first()


def _all(connection: sa.Connection, statement: sa.Select[Any], keys: Keys) -> list[views.Fields]:
    """Every row of a run, page by page."""
    rows: list[views.Fields] = []
    while True:
        page = _numbered(connection, statement, keys, rows[-1][NUMBER_AT] if rows else 0, PAGE_ROWS)
        rows.extend(page)
        if len(page) < PAGE_ROWS:
            return rows


def _lines(connection: sa.Connection, statement: sa.Select[Any], keys: Keys) -> Iterator[WorkLine]:
    """Every row of a run, page by page."""
    last = 0
    while page := connection.execute(statement, {**keys, "after_no": last, "limit": PAGE_LINES}).all():
        yield from map(WorkLine._make, page)
        last = page[-1][1]


def _numbered(
    connection: sa.Connection, statement: sa.Select[Any], keys: Keys, after_no: int, limit: int
) -> Sequence[views.Fields]:
    return connection.execute(statement, {**keys, "after_no": after_no, "limit": limit}).all()


def _works(
    connection: sa.Connection, statement: sa.Select[Any], keys: Keys, after_no: int, limit: int
) -> tuple[Sequence[views.Fields], dict[str, ContentView]]:
    """Some steps or invocations of a run, and their contents."""
    _head(connection, keys)
    rows = _numbered(connection, statement, keys, after_no, limit)
    return rows, _contents(connection, keys["stream_id"], set().union(*map(views.digests_of_attempt, rows)))


def _contents(connection: sa.Connection, stream_id: str, digests: Iterable[str]) -> dict[str, ContentView]:
    wanted = sorted(digests)
    contents: dict[str, ContentView] = {}
    for start in range(0, len(wanted), PAGE_DIGESTS):
        values = {"stream_id": stream_id, "digests": wanted[start : start + PAGE_DIGESTS]}
        for row in connection.execute(query.CONTENTS, values).all():
            contents[row[0]] = views.content_of(row)
    return contents
