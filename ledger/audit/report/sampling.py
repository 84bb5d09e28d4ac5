"""A sample that anybody can draw again, and nobody can choose: the runs whose hash with the seed is smallest."""

from __future__ import annotations

import heapq
from hashlib import sha256

from ledger.audit.report.records import RunLine

SAMPLE_DOMAIN = b"tachograph/sample/v1\0"
SAMPLE_MAX = 1_000


def rank_of(seed: str, run_id: str) -> bytes:
    """What runs are ordered by: SHA-256 of the domain, the seed, a zero byte and the run's id."""
    return sha256(SAMPLE_DOMAIN + seed.encode() + b"\0" + run_id.encode("ascii")).digest()


class Sample:
    """The `size` runs that come first, of any number that are offered in any order."""

    def __init__(self, size: int, seed: str) -> None:
        self.size = size
        self.seed = seed
        self._held: list[tuple[int, str, RunLine]] = []

    def offer(self, run: RunLine) -> None:
        """Take it if it is among the first so far."""
        # The heap gives up its smallest, so that ranks are turned round.
        place = (-int.from_bytes(rank_of(self.seed, run.run_id), "big"), run.run_id, run)
        if len(self._held) < self.size:
            heapq.heappush(self._held, place)
        elif self._held and place > self._held[0]:
            heapq.heapreplace(self._held, place)

    def drawn(self) -> tuple[RunLine, ...]:
        """The sample, in its order."""
        return tuple(run for _, _, run in sorted(self._held, reverse=True))
