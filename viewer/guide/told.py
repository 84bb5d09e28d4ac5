"""What the page of a run says in words and figures: limits, proof, transcript and judgements."""

from ledger.audit.signing.stored import StoredCheckpoint
from ledger.verifying import Finding, RunCheck
from viewer.guide.contents import blocks
from viewer.guide.events import run
from viewer.guide.lists import AT_US, RUN, SESSION
from viewer.present.content import Block
from viewer.present.links import TraceLinks
from viewer.present.trace.gauges import Gauge
from viewer.present.trace.judgements import Judgement, judgements
from viewer.present.trace.rows import Paging, WorkRow
from viewer.present.trace.seal import Seal, seal
from viewer.present.trace.transcript import Entry, Transcript
from viewer.proof import Unchecked


def gauges() -> tuple[Gauge, ...]:
    """A limit in each state."""
    return (
        _gauge("Time", "4.17", "60 s", 0.07, note="so far"),
        _gauge("Model calls", "7", "8", 0.87, tone="high"),
        _gauge("query_logs", "5", "5", 1.0, tone="binding"),
        _gauge("query_metrics", "1", "4", 0.25, observed=True, note="only observed"),
        _gauge("rollback", "3", "2", 1.0, tone="passed", observed=True, note="only observed"),
        _gauge("Output tokens", "1,600", "2,000", 0.8, settled=0.4, note="800 of it reserved"),
        _gauge("Input tokens", "≥ 812", "8,000", 0.1, note="1 not reported"),
        _gauge("Cost", "unknown", "0.05 USD", 0.0, note="2 not priced"),
        _gauge("Same call again", "at most 2", "", 0.5),
        _gauge("a_tool_with_a_very_long_name_that_somebody_chose", "0", "12", 0.0),
    )


def _gauge(
    label: str,
    used: str,
    limit: str,
    share: float,
    *,
    settled: float | None = None,
    tone: str = "",
    observed: bool = False,
    note: str = "",
) -> Gauge:
    return Gauge(label, label, used, limit, share, share if settled is None else settled, tone, observed, note)


def transcript() -> Transcript:
    """An entry of each kind."""
    told = blocks()
    return Transcript(
        entries=[
            Entry("e1-entry", "node", "planner", "enters at planner", 1),
            Entry("step-1", "model", "planner", "", 2, _row("step-1", "planner"), said="1. disk 2. application log"),
            Entry(
                "step-2",
                "model",
                "router",
                "",
                3,
                _row("step-2", "router"),
                said="CHAT_GRAPH",
                attempts=("1: connection failed after 120 ms", "2: answered after 310 ms"),
            ),
            Entry(
                "tool-1",
                "tool",
                "query_metrics",
                "",
                4,
                _row("tool-1", "query_metrics", blocks=(("input", told[0][1]), ("output", told[1][1])), is_open=True),
                arguments="disk · db-3",
                said='{"mount":"/var","used_percent":100}',
            ),
            Entry(
                "tool-2", "tool", "query_logs", "", 5, _row("tool-2", "query_logs", "FAILED"), said="permission denied"
            ),
            Entry("tool-3", "tool", "search", "", 6, _row("tool-3", "search", "RUNNING", warning="3 hidden requests")),
            Entry("e7-entry", "guard", "evidence_guard", "evidence repair, passed after 318 ms", 7),
            Entry("e8-entry", "refused", "query_logs", "not executed: the limit of 5 was reached", 8),
            Entry("e9-entry", "note", "", "budget exhausted", 9),
        ],
        paging=Paging("Showing 1–9 of 9", None, "#transcript"),
        is_first=True,
        is_last=True,
        is_whole=False,
        entry_count=9,
    )


def _row(
    key: str,
    name: str,
    status: str = "SUCCESS",
    *,
    warning: str = "",
    blocks: tuple[tuple[str, Block], ...] = (),
    is_open: bool = False,
) -> WorkRow:
    return WorkRow(
        key=key,
        number=1,
        name=name,
        facts=("offline-rules-1", "812 in · 204 out"),
        status=status,
        warning=warning,
        scope="executor.1",
        start_us=1_240_000,
        duration_us=None if status == "RUNNING" else 280_000,
        peek="disk · db-3",
        blocks=blocks,
        asked_for=is_open,
    )


def judged() -> list[Judgement]:
    """By a person and by an evaluator."""
    feedback = {"useful": True, "comment": "Exactly what I needed.", "recorded_us": AT_US, "actor": "on-call"}
    evaluation = {"rules": {"verdict": "PASS", "usage": {"cited_results": 2}, "rationale": "It cites its evidence."}}
    return judgements(feedback, evaluation)


def seals(links: TraceLinks) -> list[Seal]:
    """The proof of a run in each state."""
    checkpoint = StoredCheckpoint("log.example/guide", 4_096, "0badcafe", bytes(range(32)), "", AT_US)
    wrong = (Finding("link_broken", "the link does not follow from the one before", f"r:{RUN}", 12),)
    found: list[RunCheck | Unchecked] = [
        _check(checkpoint, 44),
        _check(checkpoint, 40),
        _check(None, 0),
        _check(checkpoint, 0, wrong),
        Unchecked("long"),
    ]
    return [seal(each, run(), links) for each in found]


def _check(checkpoint: StoredCheckpoint | None, anchored: int, findings: tuple[Finding, ...] = ()) -> RunCheck:
    return RunCheck(
        SESSION, RUN, AT_US, 44, 12, 9, findings, is_outdated=False, checkpoint=checkpoint, anchored_count=anchored
    )
