"""Everything but one column: the log, what it names, its projections, and the triggers that hold its rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import context, op

revision = "0001"
down_revision = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Text = sa.Text()
Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Bytes = sa.LargeBinary()
Json = sa.JSON()

STREAM_IDENTITY = (
    "(kind = 'run' AND session_id IS NOT NULL AND run_id IS NOT NULL AND stream_id = 'r:' || run_id)"
    " OR (kind = 'session' AND session_id IS NOT NULL AND run_id IS NULL AND stream_id = 's:' || session_id)"
    " OR (kind = 'sys' AND session_id IS NULL AND run_id IS NULL AND stream_id = 'sys')"
)


def upgrade() -> None:
    meta = _create_log()
    _create_sessions_and_runs()
    _create_steps_and_tools()
    _create_cases()
    _adapt(op.get_context().dialect.name)
    identity = {"ledger_id": context.config.attributes["ledger_id"], "format_version": "1", "hash_version": "1"}
    op.bulk_insert(meta, [{"key": key, "value": value} for key, value in identity.items()])


def _create_log() -> sa.Table:
    """The tables that events refer to; the first of them, which says what the ledger is."""
    meta = op.create_table(
        "ledger_meta",
        sa.Column("key", Text, primary_key=True),
        sa.Column("value", Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "stream",
        sa.Column("stream_id", Id, primary_key=True),
        sa.Column("kind", Text, nullable=False),
        sa.Column("session_id", Id),
        sa.Column("run_id", Id),
        sa.Column("head_seq", Int, nullable=False),
        sa.Column("head_link", Bytes, nullable=False),
        sa.Column("owner_id", Id),
        sa.Column("owner_epoch", Int, nullable=False),
        sa.UniqueConstraint("run_id", "session_id", name="stream_run"),
        sa.CheckConstraint(STREAM_IDENTITY, name="stream_identity"),
        sa.CheckConstraint("head_seq >= 1 AND length(head_link) = 32", name="stream_head"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "stream_owner",
        "stream",
        ["owner_id"],
        **_only_where("owner_id IS NOT NULL"),
    )
    op.create_table(
        "event",
        sa.Column("pos", Int, primary_key=True, autoincrement=False),
        sa.Column("stream_id", Id, sa.ForeignKey("stream.stream_id"), nullable=False),
        sa.Column("seq", Int, nullable=False),
        sa.Column("event_id", Id, nullable=False),
        sa.Column("type", Text, nullable=False),
        sa.Column("version", Int, nullable=False),
        sa.Column("session_id", Id),
        sa.Column("run_id", Id),
        sa.Column("occurred_us", Int, nullable=False),
        sa.Column("recorded_us", Int, nullable=False),
        sa.Column("body", Bytes, nullable=False),
        sa.Column("body_hash", Bytes, nullable=False),
        sa.Column("link", Bytes, nullable=False),
        sa.UniqueConstraint("stream_id", "seq", name="event_seq"),
        sa.UniqueConstraint("stream_id", "event_id", name="event_event_id"),
        sa.CheckConstraint("length(body_hash) = 32 AND length(link) = 32", name="event_hashes"),
    )
    op.create_index(
        "event_termination",
        "event",
        ["stream_id"],
        unique=True,
        **_only_where("type = 'run.terminated'"),
    )
    op.create_table(
        "content",
        sa.Column("stream_id", Id, sa.ForeignKey("stream.stream_id"), primary_key=True),
        sa.Column("digest", Id, primary_key=True),
        sa.Column("salt", Bytes),
        sa.Column("size_bytes", Int, nullable=False),
        sa.Column("media_type", Text, nullable=False),
        *_texts("encoding", "key_id"),
        sa.Column("data", Bytes),
        sa.Column("state", Text, nullable=False),
        sa.CheckConstraint("state IN ('stored', 'digest_only', 'erased')", name="content_state"),
        sa.CheckConstraint("(state = 'stored') = (data IS NOT NULL)", name="content_data"),
    )
    return meta


def _only_where(condition: str) -> dict[str, Any]:
    return {f"{dialect}_where": sa.text(condition) for dialect in ("sqlite", "postgresql")}


def _create_sessions_and_runs() -> None:
    op.create_table(
        "chat_session",
        sa.Column("session_id", Id, primary_key=True),
        sa.Column("created_us", Int, nullable=False),
        sa.Column("last_active_us", Int, nullable=False),
        sa.Column("message_pair_count", Int, nullable=False),
        sa.Column("ttl_us", Int),
        sa.Column("expires_us", Int),
    )
    op.create_table(
        "diagnosis_run",
        sa.Column("run_id", Id, primary_key=True),
        sa.Column("session_id", Id, nullable=False),
        sa.Column("status", Text, nullable=False),
        *_texts("outcome_reason", "agent_flow", "agent", "agent_version", "actor", "environment"),
        sa.Column("labels", Json),
        sa.Column("parent_run_id", Id),
        sa.Column("continues_run_id", Id),
        *_texts("traceparent", "policy_digest"),
        sa.Column("limits", Json, nullable=False),
        sa.Column("usage", Json, nullable=False),
        sa.Column("usage_unknown_count", Int, nullable=False),
        sa.Column("timeout_us", Int, nullable=False),
        sa.Column("created_us", Int, nullable=False),
        sa.Column("updated_us", Int, nullable=False),
        sa.Column("ended_us", Int),
        sa.Column("elapsed_us", Int),
        *_texts("cancel_reason", "query_digest", "answer_digest", "error_type", "error_digest"),
        sa.Column("refused", Json),
        sa.Column("degraded", Int, nullable=False),
        sa.Column("step_count", Int, nullable=False),
        sa.Column("tool_call_count", Int, nullable=False),
        sa.Column("self_evaluation", Json),
        sa.Column("feedback", Json),
        sa.Column("fold_version", Int, nullable=False),
        _of_a_run("run_id"),
    )
    op.create_index("diagnosis_run_by_session", "diagnosis_run", ["session_id", "created_us", "run_id"])
    op.create_index("diagnosis_run_by_time", "diagnosis_run", ["created_us", "run_id"])


def _create_steps_and_tools() -> None:
    op.create_table(
        "agent_step",
        sa.Column("run_id", Id, primary_key=True),
        sa.Column("step_no", Int, primary_key=True, autoincrement=False),
        sa.Column("session_id", Id, nullable=False),
        sa.Column("boundary", Text, nullable=False),
        sa.Column("scope", Text, nullable=False),
        sa.Column("name", Text, nullable=False),
        sa.Column("model", Text),
        sa.Column("status", Text, nullable=False),
        sa.Column("attempt_count", Int, nullable=False),
        sa.Column("started_us", Int, nullable=False),
        sa.Column("started_elapsed_us", Int, nullable=False),
        sa.Column("duration_us", Int),
        sa.Column("input_tokens", Int),
        sa.Column("output_tokens", Int),
        *_texts("failure", "error_digest", "input_digest", "output_digest"),
        _of_a_run("run_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "tool_invocation",
        sa.Column("run_id", Id, primary_key=True),
        sa.Column("invocation_no", Int, primary_key=True, autoincrement=False),
        sa.Column("session_id", Id, nullable=False),
        sa.Column("attempt_id", Id, nullable=False),
        sa.Column("boundary", Text, nullable=False),
        sa.Column("scope", Text, nullable=False),
        sa.Column("tool_name", Text, nullable=False),
        sa.Column("call_id", Text),
        sa.Column("tool_key", Text),
        sa.Column("effect", Text),
        sa.Column("status", Text, nullable=False),
        sa.Column("started_us", Int, nullable=False),
        sa.Column("started_elapsed_us", Int, nullable=False),
        sa.Column("duration_us", Int),
        *_texts("failure", "error_digest", "input_digest", "output_digest"),
        _of_a_run("run_id"),
        sqlite_with_rowid=False,
    )


def _create_cases() -> None:
    op.create_table(
        "case_library",
        sa.Column("case_id", Id, primary_key=True),
        sa.Column("diagnosis_id", Id, nullable=False),
        sa.Column("session_id", Id, nullable=False),
        *_texts("query_digest", "answer_digest"),
        sa.Column("verdict", Text, nullable=False),
        sa.Column("withdrawn", Int, nullable=False),
        sa.Column("created_us", Int, nullable=False),
        sa.UniqueConstraint("diagnosis_id", name="case_library_run"),
        _of_a_run("diagnosis_id"),
    )


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, Text) for name in names]


def _of_a_run(run_id: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([run_id, "session_id"], ["stream.run_id", "stream.session_id"])


def _adapt(dialect: str) -> None:
    """What each database needs to hold the rules for every connection."""
    script = Path(__file__).with_name(f"0001_{dialect}.sql").read_text("utf-8")
    _, *statements = script.replace("{schema}", context.config.attributes.get("schema", "")).split("\n\n")
    for statement in statements:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("a ledger only moves forward")
