"""Every table of a ledger, as the newest migration leaves them.

`event` is the truth; `content` is what events name by digest; `tile` is the Merkle tree over the log, and `checkpoint`
holds what was signed of it, so that both are only added to; `erasure` and `erased_run` hold what is left to do of
erasures under way; the others are projections, which a rebuild may replace at any time, or `ledger.operational`.
Triggers are in the migrations: they are what each database needs to hold the rules for every connection. So is the
public order of PostgreSQL (`leaf` and `tree_head`); on SQLite the position is the order.
"""

from __future__ import annotations

import sqlalchemy as sa

from ledger import columns, operational
from ledger.columns import only_where, required

metadata = columns.metadata
Int, Id, Json = columns.Int, columns.Id, columns.Json
follower, token, sign_in = operational.follower, operational.token, operational.sign_in

STREAM_IDENTITY = (
    "(kind = 'run' AND session_id IS NOT NULL AND run_id IS NOT NULL AND stream_id = 'r:' || run_id)"
    " OR (kind = 'session' AND session_id IS NOT NULL AND run_id IS NULL AND stream_id = 's:' || session_id)"
    " OR (kind = 'sys' AND session_id IS NULL AND run_id IS NULL AND stream_id = 'sys')"
)


def _by_name(name: str) -> sa.Index:
    """Of runs that have such a name, in the order of their list."""
    return sa.Index(f"diagnosis_run_by_{name}", name, "created_us", "run_id", **only_where(f"{name} IS NOT NULL"))


def _of_a_run(*run_id_columns: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(run_id_columns, ["stream.run_id", "stream.session_id"])


ledger_meta = sa.Table(
    "ledger_meta",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    required("value", sa.Text),
    sqlite_with_rowid=False,
)

stream = sa.Table(
    "stream",
    metadata,
    sa.Column("stream_id", Id, primary_key=True),
    required("kind", sa.Text),
    sa.Column("session_id", Id),
    sa.Column("run_id", Id),
    required("head_seq", Int),
    required("head_link", sa.LargeBinary),
    sa.Column("owner_id", Id),
    required("owner_epoch", Int),
    sa.UniqueConstraint("run_id", "session_id", name="stream_run"),
    sa.CheckConstraint(STREAM_IDENTITY, name="stream_identity"),
    sa.CheckConstraint("head_seq >= 1 AND length(head_link) = 32", name="stream_head"),
    sa.Index("stream_owner", "owner_id", **only_where("owner_id IS NOT NULL")),
    sqlite_with_rowid=False,
)

event = sa.Table(
    "event",
    metadata,
    sa.Column("pos", Int, primary_key=True, autoincrement=False),
    sa.Column("stream_id", Id, sa.ForeignKey("stream.stream_id"), nullable=False),
    required("seq", Int),
    required("event_id", Id),
    required("type", sa.Text),
    required("version", Int),
    sa.Column("session_id", Id),
    sa.Column("run_id", Id),
    required("occurred_us", Int),
    required("recorded_us", Int),
    required("body", sa.LargeBinary),
    required("body_hash", sa.LargeBinary),
    required("link", sa.LargeBinary),
    sa.UniqueConstraint("stream_id", "seq", name="event_seq"),
    sa.UniqueConstraint("stream_id", "event_id", name="event_event_id"),
    sa.CheckConstraint("length(body_hash) = 32 AND length(link) = 32", name="event_hashes"),
    sa.Index("event_termination", "stream_id", unique=True, **only_where("type = 'run.terminated'")),
)

content = sa.Table(
    "content",
    metadata,
    sa.Column("stream_id", Id, sa.ForeignKey("stream.stream_id"), primary_key=True),
    sa.Column("digest", Id, primary_key=True),
    sa.Column("salt", sa.LargeBinary),
    required("size_bytes", Int),
    required("media_type", sa.Text),
    sa.Column("encoding", sa.Text),
    sa.Column("key_id", sa.Text),
    sa.Column("data", sa.LargeBinary),
    required("state", sa.Text),
    sa.Column("erased_seq", Int),
    sa.CheckConstraint("state IN ('stored', 'digest_only', 'erased')", name="content_state"),
    sa.CheckConstraint("(state = 'stored') = (data IS NOT NULL)", name="content_data"),
)

erasure = sa.Table(
    "erasure",
    metadata,
    sa.Column("erasure_id", Id, primary_key=True),
    required("scope", sa.Text),
    sa.Column("of_session_id", Id),
    sa.Column("of_run_id", Id),
    sa.Column("digest", Id),
    sa.Column("before_us", Int),
    required("reason", sa.Text),
    sa.Column("actor", sa.Text),
    required("is_marked", Int),
    required("run_count", Int),
    required("content_count", Int),
    required("size_bytes", Int),
    sqlite_with_rowid=False,
)

erased_run = sa.Table(
    "erased_run",
    metadata,
    sa.Column("erasure_id", Id, sa.ForeignKey("erasure.erasure_id"), primary_key=True),
    sa.Column("stream_id", Id, sa.ForeignKey("stream.stream_id"), primary_key=True),
    required("content_count", Int),
    required("size_bytes", Int),
    sqlite_with_rowid=False,
)

tile = sa.Table(
    "tile",
    metadata,
    sa.Column("level", Int, primary_key=True, autoincrement=False),
    sa.Column("tile_index", Int, primary_key=True, autoincrement=False),
    required("root", sa.LargeBinary),
    required("hashes", sa.LargeBinary),
    sa.CheckConstraint("level >= 0 AND tile_index >= 0", name="tile_place"),
    sa.CheckConstraint("length(root) = 32 AND length(hashes) = 8192", name="tile_hashes"),
)

checkpoint = sa.Table(
    "checkpoint",
    metadata,
    sa.Column("origin", Id, primary_key=True),
    sa.Column("size", Int, primary_key=True, autoincrement=False),
    sa.Column("key_id", Id, primary_key=True),
    required("root", sa.LargeBinary),
    required("note", sa.Text),
    required("created_us", Int),
    sa.CheckConstraint("size >= 0 AND length(root) = 32", name="checkpoint_tree"),
)

chat_session = sa.Table(
    "chat_session",
    metadata,
    sa.Column("session_id", Id, primary_key=True),
    required("created_us", Int),
    required("last_active_us", Int),
    required("message_pair_count", Int),
    sa.Column("ttl_us", Int),
    sa.Column("expires_us", Int),
    sa.Index("chat_session_by_activity", "last_active_us", "session_id"),
)

diagnosis_run = sa.Table(
    "diagnosis_run",
    metadata,
    sa.Column("run_id", Id, primary_key=True),
    required("session_id", Id),
    required("status", sa.Text),
    sa.Column("outcome_reason", sa.Text),
    sa.Column("agent_flow", sa.Text),
    sa.Column("agent", sa.Text),
    sa.Column("agent_version", sa.Text),
    sa.Column("actor", sa.Text),
    sa.Column("environment", sa.Text),
    sa.Column("labels", Json),
    sa.Column("parent_run_id", Id),
    sa.Column("continues_run_id", Id),
    sa.Column("traceparent", sa.Text),
    sa.Column("policy_digest", sa.Text),
    required("limits", Json),
    required("usage", Json),
    required("usage_unknown_count", Int),
    required("timeout_us", Int),
    required("created_us", Int),
    required("updated_us", Int),
    sa.Column("ended_us", Int),
    sa.Column("elapsed_us", Int),
    sa.Column("cancel_reason", sa.Text),
    sa.Column("query_digest", sa.Text),
    sa.Column("answer_digest", sa.Text),
    sa.Column("error_type", sa.Text),
    sa.Column("error_digest", sa.Text),
    sa.Column("refused", Json),
    required("degraded", Int),
    required("step_count", Int),
    required("tool_call_count", Int),
    sa.Column("self_evaluation", Json),
    sa.Column("feedback", Json),
    required("fold_version", Int),
    sa.Column("orchestration_trace", Json),
    sa.Column("currency", sa.Text),
    sa.Column("price_table", sa.Text),
    sa.Column("cost_unknown_count", Int),
    sa.Column("reserved", Json),
    sa.Column("incidents", Json),
    _of_a_run("run_id", "session_id"),
    sa.Index("diagnosis_run_by_session", "session_id", "created_us", "run_id"),
    sa.Index("diagnosis_run_by_time", "created_us", "run_id"),
    *map(_by_name, ("agent", "actor", "environment")),
)

agent_step = sa.Table(
    "agent_step",
    metadata,
    sa.Column("run_id", Id, primary_key=True),
    sa.Column("step_no", Int, primary_key=True, autoincrement=False),
    required("session_id", Id),
    required("boundary", sa.Text),
    required("scope", sa.Text),
    required("name", sa.Text),
    sa.Column("model", sa.Text),
    required("status", sa.Text),
    required("attempt_count", Int),
    required("started_us", Int),
    required("started_elapsed_us", Int),
    sa.Column("duration_us", Int),
    sa.Column("input_tokens", Int),
    sa.Column("output_tokens", Int),
    sa.Column("failure", sa.Text),
    sa.Column("error_digest", sa.Text),
    sa.Column("input_digest", sa.Text),
    sa.Column("output_digest", sa.Text),
    sa.Column("timeout_us", Int),
    sa.Column("cost_micros", Int),
    sa.Column("first_output_us", Int),
    sa.Column("output_chunks", Int),
    sa.Column("hidden_retry_count", Int),
    _of_a_run("run_id", "session_id"),
    sqlite_with_rowid=False,
)

tool_invocation = sa.Table(
    "tool_invocation",
    metadata,
    sa.Column("run_id", Id, primary_key=True),
    sa.Column("invocation_no", Int, primary_key=True, autoincrement=False),
    required("session_id", Id),
    required("attempt_id", Id),
    required("boundary", sa.Text),
    required("scope", sa.Text),
    required("tool_name", sa.Text),
    sa.Column("call_id", sa.Text),
    sa.Column("tool_key", sa.Text),
    sa.Column("effect", sa.Text),
    required("status", sa.Text),
    required("started_us", Int),
    required("started_elapsed_us", Int),
    sa.Column("duration_us", Int),
    sa.Column("failure", sa.Text),
    sa.Column("error_digest", sa.Text),
    sa.Column("input_digest", sa.Text),
    sa.Column("output_digest", sa.Text),
    sa.Column("timeout_us", Int),
    sa.Column("hidden_retry_count", Int),
    _of_a_run("run_id", "session_id"),
    sqlite_with_rowid=False,
)

case_library = sa.Table(
    "case_library",
    metadata,
    sa.Column("case_id", Id, primary_key=True),
    required("diagnosis_id", Id),
    required("session_id", Id),
    sa.Column("query_digest", sa.Text),
    sa.Column("answer_digest", sa.Text),
    required("verdict", sa.Text),
    required("withdrawn", Int),
    required("created_us", Int),
    sa.UniqueConstraint("diagnosis_id", name="case_library_run"),
    _of_a_run("diagnosis_id", "session_id"),
)
