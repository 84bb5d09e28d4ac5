"""What verifying found to be wrong, each named by where it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ledger.errors import LedgerDamaged, Place
from ledger.verifying.taken import Taken, Word, add_taken

FINDINGS_MAX = 100
"""Findings that are told one by one; of further ones only the number is."""

Problem = Literal[
    "body_changed",
    "budget_exceeded",
    "checkpoint_differs",
    "column_differs",
    "content_damaged",
    "content_missing",
    "content_unnamed",
    "erasure_differs",
    "event_out_of_place",
    "event_unreadable",
    "file_damaged",
    "head_differs",
    "link_broken",
    "meta_differs",
    "order_differs",
    "owner_differs",
    "position_gap",
    "row_differs",
    "row_stray",
    "rules_missing",
    "sequence_gap",
    "stream_identity",
    "stream_missing",
    "tree_differs",
    "usage_differs",
]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as the events say, or an event that is not as its link says."""

    problem: Problem
    detail: str
    stream_id: str | None = None
    seq: int | None = None
    """Of the first event of its stream that is wrong."""

    def __str__(self) -> str:
        place = self.stream_id or "the ledger"
        return f"{place}{f', event {self.seq}' if self.seq is not None else ''}: {self.detail} ({self.problem})"


@dataclass(frozen=True, slots=True)
class Tail:
    """The events at the end of the log that no checkpoint vouches for: somebody may have cut off more of them."""

    event_count: int = 0
    first_us: int | None = None
    """When the earliest of them was recorded, microseconds since the Unix epoch; None where there is none."""
    last_us: int | None = None

    def plus(self, other: Tail) -> Tail:
        """Both together."""
        firsts = [at_us for at_us in (self.first_us, other.first_us) if at_us is not None]
        lasts = [at_us for at_us in (self.last_us, other.last_us) if at_us is not None]
        return Tail(self.event_count + other.event_count, min(firsts, default=None), max(lasts, default=None))


@dataclass(frozen=True, slots=True)
class Checked:
    """What one stream, its contents and its rows turned out to be."""

    content_count: int = 0
    row_count: int = 0
    is_outdated: bool = False
    """Whether rows are as an earlier version folded them, and otherwise right."""
    findings: tuple[Finding, ...] = ()
    tail: Tail = Tail()
    """Its events."""
    taken: Mapping[Word, Taken] = field(default_factory=dict)
    """What its events say of erasures."""


@dataclass(slots=True)
class Tally:
    """Sums over streams; two of them add up."""

    stream_count: int = 0
    content_count: int = 0
    row_count: int = 0
    outdated_count: int = 0
    tail: Tail = Tail()
    findings: list[Finding] = field(default_factory=list)
    finding_count: int = 0
    taken: dict[Word, Taken] = field(default_factory=dict)

    def add(self, checked: Checked) -> None:
        """One more stream."""
        self.stream_count += 1
        self._plus(checked)
        self.outdated_count += checked.is_outdated
        self.found(checked.findings)

    def found(self, findings: tuple[Finding, ...]) -> None:
        """All are counted, and the first `FINDINGS_MAX` kept."""
        self.finding_count += len(findings)
        self.findings += findings[: FINDINGS_MAX - len(self.findings)]

    def merge(self, other: Tally) -> None:
        """Those of further streams."""
        self.stream_count += other.stream_count
        self._plus(other)
        self.outdated_count += other.outdated_count
        self.finding_count += other.finding_count
        self.findings += other.findings[: FINDINGS_MAX - len(self.findings)]

    def _plus(self, more: Checked | Tally) -> None:
        self.content_count += more.content_count
        self.row_count += more.row_count
        self.tail = self.tail.plus(more.tail)
        add_taken(self.taken, more.taken)


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was looked at, and what is wrong with it."""

    ledger_id: str
    event_count: int
    stream_count: int
    content_count: int
    row_count: int
    findings: tuple[Finding, ...]
    """The first `FINDINGS_MAX`; in each stream only the first event that is wrong."""
    finding_count: int
    runs_outdated: int
    """Runs whose rows an earlier version of this program folded; a rebuild makes them anew."""
    tail: Tail
    anchored_count: int = 0
    """Events that are those which a checkpoint kept outside is of."""

    @property
    def is_right(self) -> bool:
        """Whether nothing was found; which says nothing of events that were cut off at the end of the log."""
        return self.finding_count == 0

    def require_right(self, place: Place) -> None:
        """`LedgerDamaged`, with what was found first, if anything was."""
        if not self.is_right:
            raise LedgerDamaged(place, str(self.findings[0]), self.finding_count)
