"""This time against last time: the goal, and each figure that is not as the committed baseline has it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from demo.baseline.measuring import Totals
from demo.errors import DemoError

BASELINE = Path(__file__).parent / "baseline.json"
DRIFT = Path(__file__).parent / "drift.json"
"""Every change of the baseline, with its reason."""

RIGHT_SHARE_MIN = 0.8
CITED_SHARE_MIN = 0.9
DEGRADED_SHARE_MAX = 0.1
TOKENS_TOLERANCE = 0.05
"""The folder of the logs is part of each result, and its name is not equally long everywhere."""

Json = dict[str, Any]


class BaselineUnreadable(DemoError):
    """The committed baseline, or what is written beside it, cannot be read or written."""

    code = "baseline_unreadable"


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of one question that is not as it was."""

    question: int
    figure: str
    before: object
    now: object

    def __str__(self) -> str:
        return f"question {self.question}: {self.figure} was {self.before}, is {self.now}"


def missed_goals(totals: Totals) -> Iterator[str]:
    """What was to be reached and was not."""
    if totals.right < RIGHT_SHARE_MIN * totals.questions:
        yield f"the right cause for {RIGHT_SHARE_MIN:.0%} of the questions"
    if totals.evidence_cited < CITED_SHARE_MIN * totals.questions:
        yield f"real evidence in {CITED_SHARE_MIN:.0%} of the answers"
    if totals.degraded > DEGRADED_SHARE_MAX * totals.questions:
        yield f"at most {DEGRADED_SHARE_MAX:.0%} degraded answers"


def read_json(path: Path) -> Any:
    """What is in a file of the baseline; None if there is none yet."""
    try:
        return orjson.loads(path.read_bytes()) if path.exists() else None
    except (OSError, orjson.JSONDecodeError) as error:
        raise BaselineUnreadable(f"{path.name} cannot be read: {error}") from error


def drift_of(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> list[Change]:
    """What differs; nothing where these are not the same questions, put to the same model."""
    if before is None or any(before[key] != now[key] for key in ("seed", "model")):
        return []
    return changes(before, now)


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Change]:
    """Every figure that differs, question by question; tokens by more than a little."""
    rows = {row["question"]: row for row in before["rows"]}
    return [
        Change(row["question"], figure, was, value)
        for row in now["rows"]
        for figure, value in row.items()
        if _differs(figure, was := rows.get(row["question"], {}).get(figure), value)
    ]


def record(now: Mapping[str, Any], why: str, *, baseline: Path = BASELINE, drift: Path = DRIFT) -> list[Change]:
    """Make this the baseline; what changes by that is written beside it, with the reason."""
    before = read_json(baseline)
    changed = drift_of(before, now)
    entry = {
        "why": why,
        "before": None if before is None else before["totals"],
        "now": now["totals"],
        "changes": [str(change) for change in changed],
    }
    _write(drift, [*(read_json(drift) or []), entry])
    _write(baseline, now)
    return changed


def _differs(figure: str, before: object, now: object) -> bool:
    if figure == "tokens" and isinstance(before, int) and isinstance(now, int):
        return abs(now - before) > TOKENS_TOLERANCE * before
    return before != now


def _write(path: Path, value: Mapping[str, Any] | Sequence[Any]) -> None:
    try:
        path.write_bytes(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    except OSError as error:
        raise BaselineUnreadable(f"{path.name} cannot be written: {error.strerror}") from error
