"""What checking a bundle came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ledger.audit.bundle.errors import Problem
from ledger.audit.bundle.manifest import Manifest, PeriodManifest
from ledger.audit.notes.proofs import InclusionProof


@dataclass(frozen=True, slots=True)
class BundleFinding:
    """The first thing that is not as the bundle claims."""

    problem: Problem
    place: str
    detail: str

    def __str__(self) -> str:
        return f"{self.place}: {self.detail} ({self.problem})"


@dataclass(frozen=True, slots=True)
class PeriodRun:
    """What a period has of a run."""

    session_id: str
    run_id: str
    begun_us: int | None
    """When its first event was recorded; None if that was before."""
    ended_us: int | None
    """When its end was recorded; None if that was not in the period."""
    outcome: str | None
    reason: str | None
    event_count: int


@dataclass(frozen=True, slots=True)
class BundleReport:
    """What was looked at, and the first thing that is wrong with it."""

    manifest: Manifest
    signed_by: tuple[str, ...] = ()
    """Keys that signed the checkpoint, as text."""
    is_key_trusted: bool = False
    """Whether they came from elsewhere than the bundle."""
    content_counts: Mapping[str, int] = field(default_factory=dict)
    """Contents by their state."""
    row_count: int | None = None
    """Rows that are what the events add up to; None where that was not looked at, since another fold made them."""
    runs: tuple[PeriodRun, ...] = ()
    """Every run that has an event in the period, in the order of their first."""
    recorded_us: tuple[int, int] | None = None
    """When the first and the last of a period's events were recorded; None where there are none."""
    proof: InclusionProof | None = None
    """Of the event that was to be proven; None if none was, or no checkpoint covers it."""
    finding: BundleFinding | None = None

    @property
    def is_begin_shown(self) -> bool:
        """Whether the bundle itself shows that the log had no event of the period before these."""
        if not isinstance(self.manifest, PeriodManifest):
            return True
        is_within = self.recorded_us is None or self.recorded_us[0] >= self.manifest.from_us
        return not (self.manifest.tree.earlier_size and is_within)

    @property
    def is_end_shown(self) -> bool:
        """Whether it shows that some event came after the period; else there may have been more of it."""
        if not isinstance(self.manifest, PeriodManifest):
            return True
        return self.recorded_us is not None and self.recorded_us[1] >= self.manifest.to_us

    @property
    def is_right(self) -> bool:
        """Whether everything that was looked at is as the bundle claims."""
        return self.finding is None
