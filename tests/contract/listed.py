"""Many different runs, and in plain Python what a filter picks out of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness import events as e
from ledger import Ledger
from ledger.lists import RunLine
from ledger.run_filter import RunFilter
from tests.ledger.scripted import EPOCH_US, ScriptedRun

COUNT = 48
STEP_US = 10_000_000
FILTERS: Sequence[Mapping[str, Any]] = (
    {"session_id": "tenant-a-1"},
    {"session_prefix": "tenant-a-"},
    {"status": ("RUNNING",)},
    {"status": ("FAILED", "SUCCESS")},
    {"agent_flow": "CHAT_GRAPH"},
    {"agent": "triage"},
    {"agent_version": "2"},
    {"actor": "alice"},
    {"environment": "production"},
    {"without": ("agent_version",)},
    {"without": ("actor", "environment")},
    {"labels": {"team": "ops"}},
    {"labels": {"team": "ops", 'qu"ote': "100% 'it'"}},
    {"tool": "query_metrics"},
    {"reason": "HARNESS_LOST"},
    {"degraded": True},
    {"degraded": False},
    {"feedback": "useful"},
    {"feedback": "not_useful"},
    {"feedback": "none"},
    {"from_us": EPOCH_US + 9 * STEP_US},
    {"to_us": EPOCH_US + 30 * STEP_US + 1_000},
)


async def record_many(ledger: Ledger, count: int = COUNT, first: int = 0) -> None:
    """Record runs that differ in everything that a filter asks for; those of one index are always the same."""
    for number in range(first, first + count):
        _record(ledger, number)


def _record(ledger: Ledger, number: int) -> None:
    session_id = ("tenant-a-1", "tenant-a-2", "tenant-b-1", "tenant-ab")[number % 4]
    run = ScriptedRun(f"run-{number:04}", session_id, epoch_us=EPOCH_US + number // 2 * 2 * STEP_US)
    submit = ledger.journal.submit
    facts: dict[str, Any] = {"flow": ("CHAT_GRAPH", "AI_OPS", "CHAT_SIMPLE")[number % 3]}
    if number % 7:
        facts |= {"agent": "triage" if number % 2 else "writer", "agent_version": str(1 + number % 3)}
    if number % 3 == 1:
        facts |= {"actor": "alice" if number % 2 else "bob", "environment": "production" if number % 4 else "test"}
    if number % 5 < 2:
        facts["labels"] = {"team": "ops", **({'qu"ote': "100% 'it'"} if number % 5 else {"tier": "1"})}
    if number % 6 == 0:
        facts["currency"] = "EUR"
    submit(run.start(**facts)).result()
    if number % 4 != 3:
        tool = run.attempt("tool", "query_metrics" if number % 8 == 1 else "query_logs")
        submit(tool.start({"pattern": "OOM"})).result()
        submit(tool.succeed(["one"])).result()
    if number % 11 == 10:
        return
    if number % 9 == 4:
        submit(run.finish_graph(degraded=True)).result()
    if number % 10 == 7:
        submit(run.end("FAILED", "HARNESS_LOST")).result()
    elif number % 10 == 3:
        submit(run.end("FAILED", "ERROR")).result()
    else:
        submit(run.answer(f"The answer is {number}.")).result()
        submit(run.end()).result()
        if number % 4 == 0:
            event = run.event(e.FeedbackRecorded, useful=number % 8 == 0, elapsed_us=None)
            submit(run.submission(event)).result()


def expected(runs: Sequence[RunLine], tools: Mapping[str, set[str]], wanted: RunFilter) -> list[str]:
    """The ids of those of `runs`, newest first, that fit."""
    newest = sorted(runs, key=lambda run: (run.created_us, run.run_id), reverse=True)
    return [run.run_id for run in newest if fits(run, tools[run.run_id], wanted)]


def fits(run: RunLine, tools: set[str], wanted: RunFilter) -> bool:
    """Whether every condition holds."""
    same = ("session_id", "agent_flow", "agent", "agent_version", "actor", "environment", "degraded")
    feedback = {True: "useful", False: "not_useful", None: "none"}[run.useful]
    return all(
        (
            *(getattr(wanted, name) in (None, getattr(run, name)) for name in same),
            wanted.session_prefix is None or run.session_id.startswith(wanted.session_prefix),
            not wanted.status or run.status in wanted.status,
            all(getattr(run, name) is None for name in wanted.without),
            wanted.labels.items() <= run.labels.items(),
            wanted.tool is None or wanted.tool in tools,
            wanted.reason in (None, run.outcome_reason),
            wanted.feedback in (None, feedback),
            wanted.from_us is None or run.created_us >= wanted.from_us,
            wanted.to_us is None or run.created_us < wanted.to_us,
        )
    )


def described(wanted: RunFilter) -> str:
    """What is asked for, without what is not."""
    return str({name: value for name in wanted.__slots__ if (value := getattr(wanted, name)) not in (None, (), {})})
