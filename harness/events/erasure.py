"""Content of a run was erased: bytes and salt are gone, and every proof goes on holding (SPEC E10, D19)."""

from typing import Literal

from harness.events.base import Code, Count, Digest, Id, Name, RunEvent

ErasureScope = Literal["DIGEST", "RUN", "SESSION", "RETENTION"]
"""What was asked for: one content, a run's, a session's, or those of runs that ended long ago."""
ErasureStage = Literal["ROWS", "LOG", "FILE"]
"""How far an erasure has come, each stage after the one before: gone from the tables (freed pages are overwritten),
from the write-ahead log, and, by writing the file anew, from whatever no table points to any more."""


class ContentErased(RunEvent):
    """How much of the run's content an erasure took, and how far it has come: once for `ROWS`, and for `FILE` again."""

    type: Literal["content.erased"] = "content.erased"
    version: Literal[1] = 1
    erasure_id: Id
    """The decision, which is in the ledger's own stream."""
    scope: ErasureScope
    stage: ErasureStage
    content_count: Count
    size_bytes: Count
    """Of what was stored of them."""
    reason: Code
    actor: Name | None = None
    digest: Digest | None = None
    """The content's, where it was one that was asked for."""
