"""Rows as the records that readers get."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import orjson
import sqlalchemy as sa

from harness.state import OBSERVED, observed_in
from ledger.compression import DamagedContent, unpack, unpack_beginning
from ledger.errors import LedgerError
from ledger.lists import RunLine
from ledger.reading.query import PREVIEW_CHARS
from ledger.records import (
    AgentStep,
    ChatSession,
    ContentView,
    Erasure,
    RecordedEvent,
    RunDetail,
    RunSummary,
    ToolInvocation,
    UsefulCase,
)

Contents = Mapping[str, ContentView]
"""By digest."""

Row = sa.RowMapping
Fields = Sequence[Any]
"""A row whose columns are the fields of its record, in order."""

LINE_FACTS = (
    "agent",
    "agent_version",
    "actor",
    "environment",
    "outcome_reason",
    "usage_unknown_count",
    "currency",
    "timeout_us",
    "ended_us",
    "elapsed_us",
)
"""What a line of a list of runs says as the run's row does."""
CONTENTS_AT = slice(15, 18)
"""Where a step and an invocation have their contents: error, input and output."""


class EventUnreadable(LedgerError):
    """What is stored as an event is no JSON object, so somebody has changed it."""

    code = "event_unreadable"

    def __init__(self, event_id: str, seq: int) -> None:
        super().__init__(f"event {seq} cannot be read: what is stored of it is no JSON object")
        self.event_id = event_id
        self.seq = seq


def session_of(row: Row, now_us: int) -> ChatSession:
    """The session, with its status at the time of reading (SPEC R1)."""
    expires_us = row["expires_us"]
    return ChatSession(
        session_id=row["session_id"],
        status="EXPIRED" if expires_us is not None and expires_us <= now_us else "ACTIVE",
        message_pair_count=row["message_pair_count"],
        created_us=row["created_us"],
        last_active_us=row["last_active_us"],
        expires_us=expires_us,
    )


def summary_of(row: Row) -> RunSummary:
    """A line of a run list."""
    answer = None
    if row["answer"] is not None:
        with contextlib.suppress(DamagedContent):
            answer = unpack_beginning(row["answer"], row["answer_encoding"])
    query, _ = _unpacked(row["query"], row["query_encoding"], row["query_bytes"])
    return _summary(row, _text(query), preview_of(answer))


def line_of(row: Row, *, is_checkpointed: bool) -> RunLine:
    """A line of a list of runs with all that it may show."""
    usage: Mapping[str, int] = row["usage"]
    return RunLine(
        **dataclasses.asdict(summary_of(row)),
        **{name: row[name] for name in LINE_FACTS},
        labels=row["labels"] or {},
        degraded=bool(row["degraded"]),
        input_tokens=usage.get("input_tokens"),
        output_tokens=usage.get("output_tokens"),
        cost_micros=usage.get("cost_micros"),
        cost_unknown_count=row["cost_unknown_count"] or 0,
        useful=(row["feedback"] or {}).get("useful"),
        incidents=row["incidents"] or {},
        event_count=row["head_seq"],
        is_checkpointed=is_checkpointed,
    )


def case_of(row: Row) -> UsefulCase | None:
    """The case with its texts; None where one is damaged."""
    texts = [
        _text(_unpacked(row[f"{name}_data"], row[f"{name}_encoding"], row[f"{name}_size_bytes"])[0])
        for name in ("query", "answer")
    ]
    if texts[0] is None or texts[1] is None:
        return None
    return UsefulCase(
        row["case_id"],
        row["session_id"],
        row["diagnosis_id"],
        texts[0],
        texts[1],
        row["verdict"],
        row["created_us"],
    )


def detail_of(row: Row, head: Row, contents: Contents) -> RunDetail:
    """A run with everything its row says; `head` is its stream's."""
    query, answer = _resolve(row["query_digest"], contents), _resolve(row["answer_digest"], contents)
    return RunDetail(
        summary=_summary(row, query.text if query else None, preview_of(answer.data if answer else None)),
        agent=row["agent"],
        agent_version=row["agent_version"],
        actor=row["actor"],
        environment=row["environment"],
        labels=row["labels"] or {},
        parent_run_id=row["parent_run_id"],
        continues_run_id=row["continues_run_id"],
        traceparent=row["traceparent"],
        limits={key: limit for key, limit in row["limits"].items() if not key.startswith(OBSERVED)},
        observed_limits=dict(observed_in(row["limits"])),
        usage=row["usage"],
        reserved=row["reserved"] or {},
        usage_unknown_count=row["usage_unknown_count"],
        currency=row["currency"],
        price_table=row["price_table"],
        cost_unknown_count=row["cost_unknown_count"] or 0,
        incidents=row["incidents"] or {},
        timeout_us=row["timeout_us"],
        started_us=row["created_us"],
        ended_us=row["ended_us"],
        elapsed_us=row["elapsed_us"],
        outcome_reason=row["outcome_reason"],
        cancel_reason=row["cancel_reason"],
        error=_resolve(row["error_digest"], contents),
        refused=row["refused"],
        degraded=bool(row["degraded"]),
        orchestration_trace=row["orchestration_trace"],
        event_count=head["head_seq"],
        head_link=head["head_link"].hex(),
    )


def step_of(row: Fields, contents: Contents) -> AgentStep:
    """A model step with its contents."""
    return AgentStep(*_with_contents(row, contents))


def tool_of(row: Fields, contents: Contents) -> ToolInvocation:
    """A tool's invocation with its contents."""
    return ToolInvocation(*_with_contents(row, contents))


def event_of(row: Row) -> RecordedEvent:
    """An event as it is stored, with its body parsed; `EventUnreadable` if that cannot be."""
    fields = _parsed(row)
    return RecordedEvent(
        pos=row["pos"],
        seq=row["seq"],
        event_id=row["event_id"],
        type=row["type"],
        version=row["version"],
        occurred_us=row["occurred_us"],
        recorded_us=row["recorded_us"],
        elapsed_us=fields.get("elapsed_us"),
        fields=fields,
        body=row["body"],
        body_hash=row["body_hash"].hex(),
        link=row["link"].hex(),
    )


def _parsed(row: Row) -> dict[str, Any]:
    try:
        fields = orjson.loads(row["body"])
    except ValueError as error:
        raise EventUnreadable(row["event_id"], row["seq"]) from error
    if not isinstance(fields, dict):
        raise EventUnreadable(row["event_id"], row["seq"])
    return fields


def content_of(row: Fields) -> ContentView:
    """A content as it can be read today."""
    digest, size_bytes, media_type, state, stored, erasure, encoding = row
    data, is_damaged = (stored, False) if encoding is None else _unpacked(stored, encoding, size_bytes)
    media_type = "" if data is None else media_type
    if erasure is None and not is_damaged:
        return ContentView(digest, size_bytes, media_type, state, data)
    return ContentView(digest, size_bytes, media_type, "damaged" if is_damaged else state, data, _erasure_of(erasure))


def evaluation_of(row: Row, contents: Contents) -> Mapping[str, Any] | None:
    """What each evaluator said, with its `rationale` as text where it can be read."""
    evaluations = row["self_evaluation"]
    if evaluations is None:
        return None
    return {name: _with_text(said, "rationale", contents) for name, said in evaluations.items()}


def feedback_of(row: Row, contents: Contents) -> Mapping[str, Any] | None:
    """The feedback that counts, with its `comment` as text where it can be read."""
    feedback = row["feedback"]
    return None if feedback is None else _with_text(feedback, "comment", contents)


def digests_of_run(row: Row) -> set[str]:
    """The contents that a run's own row names."""
    named = {row["query_digest"], row["answer_digest"], row["error_digest"]}
    named |= {said.get("rationale_digest") for said in (row["self_evaluation"] or {}).values()}
    named.add((row["feedback"] or {}).get("comment_digest"))
    return {digest for digest in named if digest is not None}


def digests_of_attempt(row: Fields) -> set[str]:
    """The contents that a step's or an invocation's row names."""
    return {digest for digest in row[CONTENTS_AT] if digest is not None}


def preview_of(data: bytes | None) -> str | None:
    """The beginning of a text."""
    text = _text(data)
    return None if text is None else text[:PREVIEW_CHARS]


def _summary(row: Row, query: str | None, preview: str | None) -> RunSummary:
    return RunSummary(
        run_id=row["run_id"],
        session_id=row["session_id"],
        query=query,
        status=row["status"],
        agent_flow=row["agent_flow"],
        answer_preview=preview,
        step_count=row["step_count"],
        tool_call_count=row["tool_call_count"],
        created_us=row["created_us"],
        updated_us=row["updated_us"],
    )


def _with_contents(row: Fields, contents: Contents) -> Iterator[Any]:
    """The fields of an attempt's record: contents for digests, and 0 where no hidden retry was ever counted."""
    *others, hidden_retry_count = row[CONTENTS_AT.stop :]
    views = [_resolve(digest, contents) for digest in row[CONTENTS_AT]]
    return chain(row[: CONTENTS_AT.start], views, others, (hidden_retry_count or 0,))


def _with_text(said: Mapping[str, Any], name: str, contents: Contents) -> dict[str, Any]:
    view = _resolve(said.get(f"{name}_digest"), contents)
    return {**said, name: view.text} if view is not None and view.text is not None else dict(said)


def _resolve(digest: str | None, contents: Contents) -> ContentView | None:
    if digest is None:
        return None
    return contents.get(digest) or ContentView(digest, 0, "application/octet-stream", "erased", None)


def _unpacked(stored: bytes | None, encoding: str | None, size_bytes: int | None) -> tuple[bytes | None, bool]:
    """The data, if there are any, and whether they are damaged, which must not take the rest of a run with it."""
    if stored is None or size_bytes is None:
        return None, False
    try:
        return unpack(stored, encoding, size_bytes), False
    except DamagedContent:
        return None, True


def _erasure_of(body: bytes | None) -> Erasure | None:
    if body is None:
        return None
    said = orjson.loads(body)
    return Erasure(said["occurred_us"], said["reason"], said.get("actor"), said["erasure_id"])


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")
