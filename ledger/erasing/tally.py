"""What an erasure took, over all of its transactions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ledger.erasing.erasing import Taken


@dataclass(slots=True)
class Tally:
    """Sums over transactions."""

    content_count: int = 0
    size_bytes: int = 0
    streams: set[str] = field(default_factory=set)
    unreadable: set[str] = field(default_factory=set)

    def add(self, taken: Taken) -> None:
        self.content_count += taken.content_count
        self.size_bytes += taken.size_bytes
        self.streams.update(taken.stream_ids)
        self.unreadable.update(taken.unreadable)
