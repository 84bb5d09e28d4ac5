"""Every bound of the demo, each with a name: what is read, kept, asked, answered and waited for."""

from typing import Final

from harness import Limits

# What a client may send.
QUESTION_CHARS_MAX: Final = 16_000
ACTIVE_RUNS_MAX: Final = 8
"""Chats and checks at once; one more is refused with 429 and creates nothing."""
ACTIVE_RUNS_LIMIT: Final = 1_000
"""That it may be set to."""

# What a run may use.
CHAT_LIMITS: Final = Limits(
    model_calls=16,
    tool_calls=24,
    per_tool={
        "host_metrics": 6,
        "top_processes": 6,
        "search_logs": 8,
        "search_runbooks": 8,
        "similar_cases": 3,
        "current_time": 2,
        "prometheus_alerts": 4,
        "query_prometheus": 8,
        "query_prometheus_range": 8,
        "query_database": 8,
    },
    # For a name that a model made up: the policy denies it, and a denied call is not charged.
    per_tool_default=1,
    input_tokens=200_000,
    output_tokens=20_000,
    total_tokens=220_000,
    run_bytes=4 * 1024 * 1024,
    repeated_calls=2,
    # A model that runs in a circle is stopped by its rounds; the record says that it did.
    observe={"repeated_calls"},
)
CHAT_TIMEOUT_S: Final = 60.0
MODEL_TIMEOUT_S: Final = 30.0
TIMEOUT_S_MAX: Final = 3600.0
"""That either may be set to."""

# What the investigation may do.
INVESTIGATION_ROUNDS_MAX: Final = 4
"""Model calls of one visit to the executor."""
TOOL_CALLS_PER_REPLY_MAX: Final = 8
EVIDENCE_REPAIRS_MAX: Final = 1
ARGUMENT_REPAIRS_MAX: Final = 1

# What a tool may read and return.
TOOL_RESULT_BYTES_MAX: Final = 24 * 1024
TOOL_SHOWN_BYTES_MAX: Final = TOOL_RESULT_BYTES_MAX * 2 // 3
"""Lines, rows, series or alerts as JSON; the rest of a result needs room, too."""
LOG_FILES_MAX: Final = 200
LOG_ENTRIES_MAX: Final = 5_000
"""Names looked at while looking for log files."""
LOG_BYTES_MAX: Final = 64 * 1024 * 1024
LOG_FILE_BYTES_MAX: Final = 8 * 1024 * 1024
"""Read from the end of each file: the newest lines; of a gzip file, from its beginning."""
LOG_GZIP_TEXT_BYTES_MAX: Final = 32 * 1024 * 1024
"""Of what one gzip file unpacks to."""
LOG_LINE_BYTES_MAX: Final = 4 * 1024
"""Searched of each line; the rest of a longer line is not."""
LOG_LINE_CHARS_SHOWN: Final = 300
LOG_MATCHES_SHOWN_MAX: Final = 40
LOG_SKIPPED_SHOWN_MAX: Final = 20
LOG_PATTERN_CHARS_MAX: Final = 300
PROCESSES_SHOWN_MAX: Final = 15
DISKS_SHOWN_MAX: Final = 20
CPU_SAMPLE_S: Final = 0.2
SNAPSHOT_BYTES_MAX: Final = 1024 * 1024
PROMETHEUS_TIMEOUT_S: Final = 5.0
"""For the whole of one answer; Prometheus itself is told to give up then."""
PROMETHEUS_ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024
"""Read of one answer; a longer one is refused."""
PROMETHEUS_QUERY_CHARS_MAX: Final = 1_000
PROMETHEUS_SERIES_MAX: Final = 50
PROMETHEUS_POINTS_MAX: Final = 60
"""Of each series of a range; its step follows from it."""
PROMETHEUS_RANGE_MINUTES_MAX: Final = 31 * 24 * 60
PROMETHEUS_TEXT_CHARS_SHOWN: Final = 200
"""Of the name or value of a label, of an annotation, of an error."""
PROMETHEUS_LABELS_SHOWN_MAX: Final = 20
ALERTS_SHOWN_MAX: Final = 50
SQL_CHARS_MAX: Final = 4_000
SQL_ROWS_MAX: Final = 100
SQL_CELL_CHARS_SHOWN: Final = 300
SQL_CELL_BYTES_MAX: Final = 16 * 1024 * 1024
"""Of one value that SQLite makes; other servers have a bound of their own."""
SQL_TIMEOUT_S: Final = 5.0
"""For connecting, and for one statement: told to the server, and watched from here."""
SQL_LOCK_TIMEOUT_S: Final = 1
CASES_READ_MAX: Final = 100
CASES_SHOWN_MAX: Final = 3
CASE_ANSWER_CHARS_MAX: Final = 1_500
RUNBOOK_HITS_MAX: Final = 5
RUNBOOK_TEXT_CHARS_MAX: Final = 1_500
RUNBOOK_FILE_BYTES_MAX: Final = 64 * 1024
RUNBOOK_FILES_MAX: Final = 100

# What a conversation remembers.
MEMORY_TURNS_MAX: Final = 6
MEMORY_TEXT_CHARS_MAX: Final = 2_000
MEMORY_TTL_S: Final = 24 * 60 * 60
MEMORY_TIMEOUT_S: Final = 1.0
"""For one look at a conversation, or one change; a run goes on without what is not there in time."""
MEMORY_CONNECTIONS_MAX: Final = 16
"""To Redis."""

# What a stream may hold back for a slow reader.
SSE_MESSAGES_WAITING_MAX: Final = 256
