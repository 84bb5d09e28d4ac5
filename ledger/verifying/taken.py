"""What runs say was taken of them by erasures, and on whose word; sums of it add up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from harness.events import ContentErased


class Word(NamedTuple):
    """On whose word something was taken, as a run says it."""

    erasure_id: str
    scope: str
    reason: str
    actor: str | None
    digest: str | None
    session_id: str | None
    """Whose it was; not told apart for retention."""
    run_id: str | None
    """Only where a run, or a content of one, was meant."""

    @classmethod
    def of(cls, event: ContentErased) -> Word:
        """What the event says of it."""
        session_id = None if event.scope == "RETENTION" else event.session_id
        run_id = event.run_id if event.scope in ("RUN", "DIGEST") else None
        return cls(event.erasure_id, event.scope, event.reason, event.actor, event.digest, session_id, run_id)


class Taken(NamedTuple):
    """What was taken on one word, and where that is said first."""

    stream_id: str
    seq: int
    run_count: int
    content_count: int
    size_bytes: int

    def plus(self, other: Taken) -> Taken:
        """Both together, of different runs."""
        place = min(self[:2], other[:2])
        return Taken(*place, *(one + more for one, more in zip(self[2:], other[2:], strict=True)))


def add_taken(total: dict[Word, Taken], more: Mapping[Word, Taken]) -> None:
    """Add what others say."""
    for word, taken in more.items():
        total[word] = total[word].plus(taken) if word in total else taken
