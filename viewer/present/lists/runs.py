"""A run as one row of a list."""

from collections.abc import Iterable
from dataclasses import dataclass

from ledger.lists import Attention, AttentionReason, RunLine
from ledger.words.codes import plain
from ledger.words.format import count, duration, money
from ledger.words.text import shorten
from viewer.present.trace.verdict import TONES, pill
from viewer.words import N_
from viewer.words import gettext as _

QUESTION_CHARS_MAX = 200
ANSWER_CHARS_MAX = 200

_ATTENTION: dict[AttentionReason, str] = {
    "running_long": N_("has used more than half of its time and is still running"),
    "harness_lost": N_("its process died"),
    "failed": N_("failed"),
    "budget_exhausted": N_("ran out of its budget"),
    "timed_out": N_("ran out of time"),
    "hidden_retries": N_("a client in it retried on its own"),
    "degraded": N_("answered, but degraded"),
}


@dataclass(frozen=True, slots=True)
class RunRow:
    """What a list says of a run, in words; an empty figure is one that the run does not have."""

    line: RunLine
    question: str
    answer: str
    pill: str
    tone: str
    reason: str
    """Why it ended, where its outcome does not say so by itself."""
    agent: str
    tokens: str
    cost: str
    lasted: str
    judged: str
    proof: str
    """Whether the newest checkpoint covers it; nothing was verified for that."""
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AttentionRow:
    """A run that should be looked at, and why."""

    row: RunRow
    why: str


def run_rows(lines: Iterable[RunLine]) -> list[RunRow]:
    """The rows, in the order of the lines."""
    return [run_row(line) for line in lines]


def run_row(line: RunLine) -> RunRow:
    """One row."""
    is_suspect = line.degraded or bool(line.incidents.get("hidden_retries"))
    tone = "warn" if is_suspect and line.status == "SUCCESS" else TONES.get(line.status, "bad")
    return RunRow(
        line=line,
        question=shorten(line.query or "", QUESTION_CHARS_MAX) or _("The question is not kept"),
        answer=shorten(line.answer_preview or "", ANSWER_CHARS_MAX),
        pill=pill(line.status),
        tone=tone,
        reason=_reason(line),
        agent=_agent(line.agent, line.agent_version),
        tokens=_tokens(line),
        cost=_cost(line),
        lasted="" if line.elapsed_us is None else duration(line.elapsed_us),
        judged={True: _("useful"), False: _("not useful"), None: ""}[line.useful],
        proof=_("checkpointed") if line.is_checkpointed else _("not checkpointed"),
        labels=tuple(f"{name}: {value}" for name, value in line.labels.items()),
    )


def attention_rows(found: Iterable[Attention]) -> list[AttentionRow]:
    """The most urgent first, as they were ranked."""
    return [AttentionRow(run_row(each.run), _(_ATTENTION[each.reason])) for each in found]


def _reason(line: RunLine) -> str:
    said_already = line.outcome_reason is None or line.outcome_reason == line.status
    return "" if said_already or line.status == "SUCCESS" else plain(line.outcome_reason or "")


def _agent(agent: str | None, version: str | None) -> str:
    return f"{agent}@{version}" if agent and version else agent or ""


def _tokens(line: RunLine) -> str:
    known = [each for each in (line.input_tokens, line.output_tokens) if each is not None]
    if not known:
        return _("unknown") if line.usage_unknown_count else ""
    return f"{'≥ ' if line.usage_unknown_count else ''}{count(sum(known))}"


def _cost(line: RunLine) -> str:
    if line.cost_micros is None:
        return _("unknown") if line.cost_unknown_count else ""
    return f"{'≥ ' if line.cost_unknown_count else ''}{money(line.cost_micros)} {line.currency or ''}".rstrip()
