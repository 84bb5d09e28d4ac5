"""Every statement that reads, built once; each costs as much as its answer, whatever the ledger holds."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import sqlalchemy as sa

from harness.ids import run_stream
from ledger.compression import PREVIEW_BYTES, PREVIEW_STORED_BYTES
from ledger.records import AgentStep, ToolInvocation
from ledger.schema import (
    Id,
    Int,
    agent_step,
    case_library,
    chat_session,
    content,
    diagnosis_run,
    event,
    ledger_meta,
    stream,
    tool_invocation,
)

PREVIEW_CHARS = PREVIEW_BYTES // 4
"""No character of UTF-8 takes more than four bytes."""


def stream_of_run(run_id: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """The id of the stream of the run that a column names."""
    return sa.literal(run_stream("")) + run_id


_query = content.alias("query")
_answer = content.alias("answer")
_run_stream = stream_of_run(diagnosis_run.c.run_id)
_case_stream = stream_of_run(case_library.c.diagnosis_id)

SUMMARY_COLUMNS = (
    diagnosis_run.c.run_id,
    diagnosis_run.c.session_id,
    _query.c.data.label("query"),
    _query.c.encoding.label("query_encoding"),
    _query.c.size_bytes.label("query_bytes"),
    diagnosis_run.c.status,
    diagnosis_run.c.agent_flow,
    sa.func.substr(_answer.c.data, 1, PREVIEW_STORED_BYTES, type_=sa.LargeBinary).label("answer"),
    _answer.c.encoding.label("answer_encoding"),
    diagnosis_run.c.step_count,
    diagnosis_run.c.tool_call_count,
    diagnosis_run.c.created_us,
    diagnosis_run.c.updated_us,
)
RUNS_WITH_CONTENTS = diagnosis_run.outerjoin(
    _query, sa.and_(_query.c.stream_id == _run_stream, _query.c.digest == diagnosis_run.c.query_digest)
).outerjoin(_answer, sa.and_(_answer.c.stream_id == _run_stream, _answer.c.digest == diagnosis_run.c.answer_digest))

_newest_first = (diagnosis_run.c.created_us.desc(), diagnosis_run.c.run_id.desc())
_older = sa.tuple_(diagnosis_run.c.created_us, diagnosis_run.c.run_id) < sa.tuple_(
    sa.bindparam("created_us", type_=Int), sa.bindparam("run_id", type_=sa.Text)
)
_run_list = sa.select(*SUMMARY_COLUMNS).select_from(RUNS_WITH_CONTENTS).order_by(*_newest_first)
_limit = sa.bindparam("limit", type_=sa.Integer)
_of_session = diagnosis_run.c.session_id == sa.bindparam("session_id")

RECENT_RUNS = _run_list.limit(_limit)
RECENT_RUNS_AFTER = _run_list.where(_older).limit(_limit)
SESSION_RUNS = _run_list.where(_of_session).limit(_limit)
SESSION_RUNS_AFTER = _run_list.where(_of_session, _older).limit(_limit)

CASES = (
    sa.select(
        *(case_library.c[name] for name in ("case_id", "session_id", "diagnosis_id", "verdict", "created_us")),
        *(_query.c[name].label(f"query_{name}") for name in ("data", "encoding", "size_bytes")),
        *(_answer.c[name].label(f"answer_{name}") for name in ("data", "encoding", "size_bytes")),
    )
    .select_from(
        case_library.join(
            _query,
            sa.and_(
                _query.c.stream_id == _case_stream,
                _query.c.digest == case_library.c.query_digest,
            ),
        ).join(
            _answer,
            sa.and_(
                _answer.c.stream_id == _case_stream,
                _answer.c.digest == case_library.c.answer_digest,
            ),
        )
    )
    .where(case_library.c.withdrawn == 0, _query.c.state == "stored", _answer.c.state == "stored")
    .order_by(case_library.c.created_us.desc(), case_library.c.case_id.desc())
    .limit(_limit)
)
"""Not those that were withdrawn, nor those of which something was erased."""

SESSION = sa.select(
    chat_session.c.session_id,
    chat_session.c.message_pair_count,
    chat_session.c.created_us,
    chat_session.c.last_active_us,
    chat_session.c.expires_us,
).where(chat_session.c.session_id == sa.bindparam("session_id"))

RUN_STREAM = sa.select(stream.c.head_seq, stream.c.head_link).where(
    stream.c.stream_id == sa.bindparam("stream_id"), stream.c.session_id == sa.bindparam("session_id")
)
RUN = sa.select(*diagnosis_run.c).where(
    diagnosis_run.c.run_id == sa.bindparam("run_id"), diagnosis_run.c.session_id == sa.bindparam("session_id")
)
CONTENTS_OF_ATTEMPT = ("error", "input", "output")
"""What of a step or an invocation is a content; the rows name digests instead."""


def _fields_of(record: type[AgentStep | ToolInvocation], table: sa.Table) -> list[sa.ColumnElement[Any]]:
    """Columns in the order of the record's fields."""
    names = [field.name for field in fields(record)]
    return [table.c[f"{name}_digest" if name in CONTENTS_OF_ATTEMPT else name] for name in names]


def _lines(
    table: sa.Table, number: str, *, name: str, model: sa.ColumnElement[Any], effect: sa.ColumnElement[Any]
) -> sa.Select[Any]:
    """Columns in the order of a `WorkLine`'s fields."""
    kind: sa.ColumnElement[str] = sa.literal_column(f"'{'model' if table is agent_step else 'tool'}'")
    shown = (kind, table.c[number], table.c[name], table.c.scope, model, effect, table.c.status)
    times = (table.c.started_elapsed_us, table.c.duration_us, table.c.hidden_retry_count)
    of_run = table.c.run_id == sa.bindparam("run_id")
    return (
        sa.select(*shown, *times)
        .where(of_run, table.c[number] > sa.bindparam("after_no"))
        .order_by(table.c[number])
        .limit(_limit)
    )


STEPS = (
    sa.select(*_fields_of(AgentStep, agent_step))
    .where(agent_step.c.run_id == sa.bindparam("run_id"), agent_step.c.step_no > sa.bindparam("after_no"))
    .order_by(agent_step.c.step_no)
    .limit(_limit)
)
TOOLS = (
    sa.select(*_fields_of(ToolInvocation, tool_invocation))
    .where(
        tool_invocation.c.run_id == sa.bindparam("run_id"), tool_invocation.c.invocation_no > sa.bindparam("after_no")
    )
    .order_by(tool_invocation.c.invocation_no)
    .limit(_limit)
)
STEP_LINES = _lines(agent_step, "step_no", name="name", model=agent_step.c.model, effect=sa.null())
TOOL_LINES = _lines(
    tool_invocation, "invocation_no", name="tool_name", model=sa.null(), effect=tool_invocation.c.effect
)
CONTENTS = (
    sa.select(
        content.c.digest,
        content.c.size_bytes,
        content.c.media_type,
        content.c.state,
        content.c.data,
        event.c.body.label("erasure"),
        content.c.encoding,
    )
    .select_from(
        content.outerjoin(event, sa.and_(event.c.stream_id == content.c.stream_id, event.c.seq == content.c.erased_seq))
    )
    .where(
        content.c.stream_id == sa.bindparam("stream_id"),
        content.c.digest.in_(sa.bindparam("digests", expanding=True)),
    )
)
SALTS = sa.select(content.c.digest, content.c.salt).where(
    content.c.stream_id == sa.bindparam("stream_id"),
    content.c.digest.in_(sa.bindparam("digests", expanding=True)),
)
"""What digests are of, beside the bytes; none where the content was erased."""
EVENT_COLUMNS = (
    event.c.pos,
    event.c.seq,
    event.c.event_id,
    event.c.type,
    event.c.version,
    event.c.occurred_us,
    event.c.recorded_us,
    event.c.body,
    event.c.body_hash,
    event.c.link,
)
EVENTS = (
    sa.select(*EVENT_COLUMNS)
    .where(event.c.stream_id == sa.bindparam("stream_id"), event.c.seq > sa.bindparam("after_seq"))
    .order_by(event.c.seq)
    .limit(_limit)
)

_place = sa.tuple_(content.c.stream_id, content.c.erased_seq)
_erased = (
    sa.select(content.c.stream_id, content.c.erased_seq)
    .distinct()
    # Of contents that are there it is told without reading them that they are not erased.
    .where(content.c.salt.is_(None), content.c.erased_seq.is_not(None))
    .where(_place > sa.tuple_(sa.bindparam("stream_id", type_=Id), sa.bindparam("after_seq", type_=Int)))
    .order_by(content.c.stream_id, content.c.erased_seq)
    .limit(_limit)
    .subquery()
)
ERASED_RUNS = (
    sa.select(event.c.run_id, event.c.seq, event.c.body)
    .join(_erased, sa.and_(event.c.stream_id == _erased.c.stream_id, event.c.seq == _erased.c.erased_seq))
    .order_by(event.c.stream_id, event.c.seq)
)
"""The runs of which content was erased, and the events that say so."""

LEDGER_ID = sa.select(ledger_meta.c.value).where(ledger_meta.c.key == "ledger_id")
RUNS_OPEN = sa.select(sa.func.count()).select_from(stream).where(stream.c.owner_id.is_not(None))
