"""A draft as the parameters of the one statement that writes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import asyncpg

from ledger.append.deciding import ContentRow, Draft, EventRow, StreamRow
from ledger.store.postgres import statements
from ledger.store.postgres.reading import Seen
from ledger.store.postgres.statements import Shape
from ledger.store.postgres.texts import words_named


async def write(connection: asyncpg.Connection[Any], draft: Draft, seen: Seen) -> bool:
    """Write the draft, which extends one stream; whether the stream still stood where it was seen."""
    shape, values = _parameters(draft, seen, await words_named(connection, draft))
    statement = statements.append(shape)
    return bool(await connection.fetchval(statement.sql, *(values[name] for name in statement.names)))


def written_as(draft: Draft) -> tuple[str, dict[str, bytes]]:
    """The stream, and the links of its events there if the draft was written, and not another one of the same ids."""
    stream_id = _head(draft).stream_id
    return stream_id, {event.event_id: event.link for event in draft.events if event.stream_id == stream_id}


def _parameters(draft: Draft, seen: Seen, words: str | None) -> tuple[Shape, dict[str, Any]]:
    head, changes = _head(draft), draft.changes
    base = _base(head, seen)
    run = changes.runs.get(head.run_id) if head.run_id is not None else None
    opened = draft.sessions.get(head.session_id or "") if head.run_id is not None else None
    case, share = next(iter(changes.cases.values()), None), next(iter(changes.sessions.values()), None)
    values: dict[str, Any] = _named("head", head)
    if base is not None:
        values |= {f"base.{name}": value for name, value in base.items()}
    values |= _columns("events", (event for event in draft.events if event.stream_id == head.stream_id))
    if opened is not None:
        opening = next(event for event in draft.events if event.stream_id == opened.stream_id)
        values |= _named("opened", opened) | _named("opening", opening)
    if run is not None and base is not None:
        values |= _named("run", run.moving)
    first = run.row if run is not None and base is None else None
    for prefix, row in (("run", first), ("case", case), ("share", share)):
        if row is not None:
            values |= _named(prefix, row)
    values |= _columns("contents", _distinct(draft.contents))
    values |= _columns("steps", changes.step_rows) | _columns("tools", changes.tool_rows)
    if words is not None:
        values["text.words"] = words
    shape = Shape(
        is_new=base is None,
        run=run is not None,
        opens_session=opened is not None,
        contents=bool(draft.contents),
        steps=bool(changes.steps),
        tools=bool(changes.tools),
        case=case is not None,
        session=share is not None,
        text=words is not None,
    )
    return shape, values


def _head(draft: Draft) -> StreamRow:
    """The stream that the draft extends, as it is then."""
    rows = [*(draft.run_row(run_id) for run_id in draft.runs), *draft.others.values()]
    (head,) = rows or draft.sessions.values()
    return head


def _base(head: StreamRow, seen: Seen) -> dict[str, Any] | None:
    """Where the stream was seen; None if it is new."""
    if head.run_id is not None:
        run = seen.heads[head.run_id]
        return None if run is None else {"head_seq": run.seq, "head_link": run.link, "owner_epoch": run.owner_epoch}
    row = seen.streams.get(head.stream_id)
    return None if row is None else {name: getattr(row, name) for name in ("head_seq", "head_link", "owner_epoch")}


def _named(prefix: str, row: Any) -> dict[str, Any]:
    return {f"{prefix}.{name}": value for name, value in zip(row._fields, row, strict=True)}


def _columns(prefix: str, rows: Iterable[EventRow | ContentRow | Any]) -> dict[str, Sequence[Any]]:
    """Rows as one array for each column."""
    listed = list(rows)
    if not listed:
        return {}
    columns = zip(listed[0]._fields, zip(*listed, strict=True), strict=True)
    return {f"{prefix}.{name}": column for name, column in columns}


def _distinct(contents: Iterable[ContentRow]) -> Iterable[ContentRow]:
    """One row for each digest, with its data where any has them."""
    rows: dict[str, ContentRow] = {}
    for row in contents:
        known = rows.get(row.digest)
        if known is None or known.data is None:
            rows[row.digest] = row
    return rows.values()
