"""What a report says, as values: counts by kind, a line for each run, and what vouches for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from ledger.bytes import canonical


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs a report is about: those that started at `from_us` or later, and before `to_us`."""

    from_us: int
    to_us: int
    agent: str | None = None
    agent_version: str | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """How often something happened; 0 is an answer too."""

    total: int
    kinds: tuple[tuple[tuple[str, ...], int], ...]
    """By kind, the most frequent first."""


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run of the period; its fields are the columns of the sheet."""

    session_id: str
    run_id: str
    agent: str | None
    agent_version: str | None
    actor: str | None
    environment: str | None
    flow: str | None
    status: str
    reason: str | None
    started_us: int
    ended_us: int | None
    elapsed_us: int | None
    degraded: int
    recovered: int
    """1 where not its owner ended it, but whoever found that the owner was dead (SPEC E7)."""
    model_calls: int
    tool_calls: int
    input_tokens: int
    output_tokens: int
    total_tokens: int
    cost_micros: int
    currency: str | None
    usage_unknown: int
    """Model attempts whose usage nobody reported: no figure here includes it."""
    refused_by: str | None
    """The resource whose limit refused work, or ended it."""
    cancel_reason: str | None
    cancel_asked_by: str | None
    """The actor of the first request; empty where none was named, or nobody asked."""
    hidden_retries: int
    calls_denied: int
    retries_refused: int
    scopes_exhausted: int
    limits_passed: int
    contents_erased: int
    event_count: int
    head_link: str


@dataclass(frozen=True, slots=True)
class Key:
    """A key in force."""

    key_id: str
    purpose: str
    algorithm: str
    fingerprint: str | None


@dataclass(frozen=True, slots=True)
class LatestCheckpoint:
    """The largest tree that was signed."""

    origin: str
    size: int
    """Events that it vouches for."""
    root: str
    key_id: str
    created_us: int


@dataclass(frozen=True, slots=True)
class Report:
    """A period of a ledger, as of one moment."""

    ledger_id: str
    made_us: int
    event_count: int
    """Events of the whole ledger that have a place in its order at that moment."""
    wanted: Wanted
    run_count: int
    open_count: int
    """Runs of the period that had not ended."""
    figures: Mapping[str, Figures]
    usage: Mapping[str, int]
    """Sums over the runs; `cost_micros:USD` and so on by currency."""
    listed: tuple[RunLine, ...]
    """Runs that ended in anything but success, or have not ended, the first of them."""
    not_listed_count: int
    """Further ones, which the sheet has."""
    sample_seed: str
    sample: tuple[RunLine, ...]
    keys: tuple[Key, ...]
    checkpoint: LatestCheckpoint | None
    sheet_digest: str
    """SHA-256 of the sheet: all runs of the period as CSV."""

    @property
    def digest(self) -> str:
        """SHA-256 of everything here as JSON with sorted keys and no spaces."""
        return sha256(canonical(dataclasses.asdict(self)).encode("ascii")).hexdigest()
