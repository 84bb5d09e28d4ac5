"""What lists of runs are made of: a run of each outcome, the form that narrows them, and what is said when none is."""

from dataclasses import replace

from ledger.lists import RunLine, RunValues
from ledger.run_filter import STATUSES
from viewer.present.lists.filters import FilterForm, filter_form
from viewer.present.lists.runs import RunRow, run_rows

AT_US = 1_796_001_247_207_214
"""When all of it happened."""
SESSION, RUN = "guide", "example"

_SUCCESS = RunLine(
    run_id=RUN,
    session_id=SESSION,
    query="Why did the nightly import stop on db-3?",
    status="SUCCESS",
    agent_flow="CHAT_GRAPH",
    answer_preview="The disk of db-3 was full. I opened a ticket so that somebody looks at it.",
    step_count=3,
    tool_call_count=6,
    created_us=AT_US,
    updated_us=AT_US,
    agent="triage",
    agent_version="1.4",
    actor="on-call",
    environment="staging",
    labels={"team": "storage"},
    outcome_reason="ANSWERED",
    degraded=False,
    input_tokens=2_048,
    output_tokens=517,
    usage_unknown_count=0,
    cost_micros=18_200,
    currency="USD",
    cost_unknown_count=0,
    timeout_us=60_000_000,
    ended_us=AT_US + 4_172_000,
    elapsed_us=4_172_000,
    useful=True,
    incidents={},
    event_count=44,
    is_checkpointed=True,
)
_REASONS = {"FAILED": "UNHANDLED", "CANCELLED": "USER_REQUESTED", "TIMED_OUT": "DEADLINE_EXCEEDED"}


def rows() -> list[RunRow]:
    """A run of each outcome, one that is degraded and priced in part, one of which nothing is known."""
    others = [
        replace(_SUCCESS, status=status, outcome_reason=_REASONS.get(status, status), answer_preview=None, useful=None)
        for status in STATUSES
        if status not in ("SUCCESS", "RUNNING")
    ]
    running = replace(_SUCCESS, status="RUNNING", elapsed_us=None, answer_preview=None, is_checkpointed=False)
    degraded = replace(_SUCCESS, degraded=True, usage_unknown_count=1, cost_unknown_count=1, useful=False)
    huge = replace(_SUCCESS, query="a question without an end " * 40, step_count=32_843, elapsed_us=3_754_000_000)
    unnamed = replace(_SUCCESS, query=None, agent=None, actor=None, environment=None, agent_flow=None, labels={})
    unknown = replace(unnamed, input_tokens=None, output_tokens=None, cost_micros=None, usage_unknown_count=2)
    return run_rows([running, _SUCCESS, degraded, *others, huge, unknown])


def form() -> FilterForm:
    """With conditions set."""
    values = RunValues(("triage",), ("1.4",), ("CHAT_GRAPH",), ("on-call",), ("staging",), ("team",), (), (), False)
    query = [("status", "FAILED"), ("agent", "triage"), ("label", "team=storage")]
    return filter_form(query, values, lambda _: "#lists")
