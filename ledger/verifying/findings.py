"""What verifying found to be wrong, each named by where it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FINDINGS_MAX = 100
"""Findings that are told one by one; of further ones only the number is."""

Problem = Literal[
    "body_changed",
    "column_differs",
    "content_damaged",
    "content_missing",
    "event_unreadable",
    "head_differs",
    "link_broken",
    "position_gap",
    "row_differs",
    "row_stray",
    "sequence_gap",
    "stream_identity",
    "stream_missing",
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
        place = self.stream_id or "the log"
        return f"{place}{f', event {self.seq}' if self.seq is not None else ''}: {self.detail} ({self.problem})"


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

    @property
    def is_right(self) -> bool:
        """Whether nothing was found; which says nothing of events that were cut off at the end of the log."""
        return self.finding_count == 0
