"""What a ledger's writer counts while it works, for whoever wants to watch it; nothing here names a run."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

from ledger.append.lanes import Waiting

LATENCY_BOUNDS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
BATCH_BOUNDS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 256.0)


class Histogram(NamedTuple):
    """How often a value was at most each bound, and above all of them."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    """One more than bounds; each only for what is above the bound before."""
    total: float


class Load(NamedTuple):
    """What is under way and waits."""

    queue_appends: int
    queue_bytes: int
    permits_granted: int
    permits_waiting: int


class SigningMeasures(NamedTuple):
    """What was counted of checkpoints."""

    size: int
    """Events under the last checkpoint; 0 before the first."""
    signed_us: int | None
    """When it was signed."""
    signed_count: int
    refused: Mapping[str, int]
    """Checkpoints that were not signed or not stored, by the error's code."""


@dataclass(frozen=True, slots=True)
class Measures:
    """All of it, since the ledger was opened."""

    load: Load
    append_s: Histogram
    """From submission to acknowledgement."""
    batch_appends: Histogram
    """Appends of one run or of all, in one transaction."""
    failed: Mapping[str, int]
    """Appends that were refused or lost, by the error's code."""
    signing: SigningMeasures | None = None
    """None without a key."""


class Meter:
    """Counts; one thread at a time calls it."""

    def __init__(self) -> None:
        self._latency = _Counting(LATENCY_BOUNDS_S)
        self._batch = _Counting(BATCH_BOUNDS)
        self._failed: dict[str, int] = {}

    def appended(self, group: Sequence[Waiting], results: Sequence[object]) -> None:
        """What became of the appends of one transaction."""
        now_s = perf_counter()
        self._batch.observe(len(group))
        for waiting, result in zip(group, results, strict=True):
            if isinstance(result, Exception):
                self.failed(result)
            else:
                self._latency.observe(now_s - waiting.submitted_s)

    def failed(self, error: Exception) -> None:
        """An append that was refused or lost."""
        code = str(getattr(error, "code", "internal_error"))
        self._failed[code] = self._failed.get(code, 0) + 1

    def measures(self, load: Load) -> Measures:
        """Everything so far."""
        return Measures(load, self._latency.histogram(), self._batch.histogram(), dict(self._failed))


class _Counting:
    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._total += value

    def histogram(self) -> Histogram:
        return Histogram(self._bounds, tuple(self._counts), self._total)
