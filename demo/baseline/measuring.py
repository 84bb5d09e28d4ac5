"""What one question came to: whether the cause is the right one, whether the evidence is real, and what it cost."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from demo.baseline.scenarios import Scenario, Truth
from demo.rules.causes import LABELS
from demo.rules.citations import citations
from demo.text import json_object

CAUSE_LINE = re.compile(r"^\W*cause\W*:\W*(?P<said>.+)$", re.IGNORECASE | re.MULTILINE)
NONE_NAMED = "none named"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """One question."""

    question: int
    right_cause: str
    named_cause: str
    is_right: bool
    """The right cause, and the culprit by name."""
    is_evidence_cited: bool
    """The answer cites evidence, and all that it cites is in a tool's result."""
    steps: int
    tools: int
    tokens: int
    is_degraded: bool


@dataclass(frozen=True, slots=True)
class Totals:
    """All questions together."""

    questions: int
    right: int
    evidence_cited: int
    degraded: int
    steps: int
    tools: int
    tokens: int


def measure(scenario: Scenario, answer: str, trace: Json) -> Measured:
    """Compare an answer with what is known, and count what its trace shows."""
    named, about = named_cause(answer)
    run, truth = trace["run"], scenario.truth
    results = [_result(tool["output"]) for tool in trace["toolInvocations"]]
    return Measured(
        question=scenario.number,
        right_cause=truth.cause,
        named_cause=named,
        is_right=_is_right(truth, named, about),
        is_evidence_cited=citations(answer, results).are_sound,
        steps=run["stepCount"],
        tools=run["toolCallCount"],
        tokens=run["usage"]["totalTokens"],
        is_degraded=bool(run["degraded"]),
    )


def named_cause(answer: str) -> tuple[str, str]:
    """The one cause that an answer names in its line `Cause: `, and the whole line; several are none."""
    found = CAUSE_LINE.search(answer)
    said = found["said"] if found else ""
    named = [label for label in LABELS if label.lower() in said.lower()]
    return (named[0] if len(named) == 1 else NONE_NAMED), said


def totals(rows: Sequence[Measured]) -> Totals:
    """Add it all up."""
    return Totals(
        questions=len(rows),
        right=sum(row.is_right for row in rows),
        evidence_cited=sum(row.is_evidence_cited for row in rows),
        degraded=sum(row.is_degraded for row in rows),
        steps=sum(row.steps for row in rows),
        tools=sum(row.tools for row in rows),
        tokens=sum(row.tokens for row in rows),
    )


def as_json(seed: int, model: str, rows: Sequence[Measured]) -> Json:
    """All of it, as the committed baseline has it."""
    return {"seed": seed, "model": model, "totals": asdict(totals(rows)), "rows": [asdict(row) for row in rows]}


def _is_right(truth: Truth, named: str, about: str) -> bool:
    names_culprit = not truth.culprits or any(culprit in about for culprit in truth.culprits)
    return named == truth.cause and names_culprit


def _result(output: Json | None) -> Json:
    """What a tool returned; nothing where it failed."""
    text = output["text"] if output else None
    return json_object(text or "") or {}
