"""The JSON of erasures, as types."""

from typing import Literal

from typing_extensions import TypedDict

from harness.events.base import Digest, Id
from viewer.api.shapes import Instant


class Erasure(TypedDict):
    """What somebody asked to be erased, or decided to erase."""

    requestId: Id | None
    """Where one person asked another one to confirm it."""
    erasureId: Id | None
    """The decision, once it was taken."""
    state: Literal["asked", "expired", "confirmed", "done"]
    """Waiting for a second person, not confirmed in time, decided, and gone from the whole file."""
    scope: str
    sessionId: Id | None
    runId: Id | None
    digest: Digest | None
    endedBefore: Instant | None
    """Of a retention."""
    reason: str
    askedBy: str | None
    askedAt: Instant | None
    expiresAt: Instant | None
    decidedBy: str | None
    """Of two persons, the one who confirmed."""
    decidedAt: Instant | None
    finishedAt: Instant | None
    contentCount: int | None
    sizeBytes: int | None
