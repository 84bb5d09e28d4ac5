"""The envelope of every event, and the few types a field may have (SPEC D9).

A field is a boolean, an integer within ±(2^53 - 1) or a bounded ASCII string; `limits`, `usage` and `labels` are
one-level maps. What is unknown is left out. Free text is content (`harness.content`), named here by its digest.
Ids and times are passed in: no field has a default that mints one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from harness.ids import (
    CODE_PATTERN,
    ID_PATTERN,
    MAX_BOUNDARY_CHARS,
    NAME_PATTERN,
    SYSTEM_STREAM,
    run_stream,
    session_stream,
)

MAX_SAFE_INTEGER = 2**53 - 1
MAX_MAP_KEYS = 64

Id = Annotated[str, Field(pattern=f"^{ID_PATTERN}$")]
Code = Annotated[str, Field(pattern=f"^{CODE_PATTERN}$")]
Name = Annotated[str, Field(pattern=f"^{NAME_PATTERN}$")]
Boundary = Annotated[str, Field(pattern=f"^[ -~]{{1,{MAX_BOUNDARY_CHARS}}}$")]
EventId = Annotated[str, Field(pattern=rf"^{ID_PATTERN}:[0-9]{{1,16}}$")]
StreamId = Annotated[str, Field(pattern=rf"^([rs]:{ID_PATTERN}|sys)$")]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Integer = Annotated[int, Field(ge=-MAX_SAFE_INTEGER, le=MAX_SAFE_INTEGER)]
Count = Annotated[int, Field(ge=0, le=MAX_SAFE_INTEGER)]
CountMap = Annotated[Mapping[Name, Count], Field(max_length=MAX_MAP_KEYS)]
Redaction = Literal["APPLIED", "FAILED"]
"""Of a content that was to be redacted. `APPLIED`: digest and size are those of the redacted form, the only one there
is. `FAILED`: the function that redacts did not, and nothing but the digest was kept."""
NameMap = Annotated[Mapping[Name, Name], Field(max_length=MAX_MAP_KEYS)]


class Event(BaseModel):
    """One immutable fact. `type` and `version` say how to read the rest."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", defer_build=True)

    event_id: EventId
    """`{writer_id}:{n}`, unique in its stream."""
    type: Code
    version: Count
    stream_id: StreamId
    occurred_us: Integer
    """Wall clock, microseconds since the Unix epoch."""


class RunEvent(Event):
    """An event in the stream of one run."""

    session_id: Id
    run_id: Id
    elapsed_us: Count | None = None
    """Monotonic microseconds since the run's start, on events written by the run's owner (SPEC D8)."""

    @model_validator(mode="after")
    def _belongs_to_its_stream(self) -> Self:
        if self.stream_id != run_stream(self.run_id):
            raise ValueError(f"stream {self.stream_id} is not the stream of run {self.run_id}")
        return self


class BoundaryEvent(RunEvent):
    """An event at a boundary of the run, with the boundary's identity (SPEC D7)."""

    boundary: Boundary
    parent_attempt_id: Id | None = None
    """The attempt inside which this boundary lies."""


class SessionEvent(Event):
    """An event in the stream of one session."""

    session_id: Id

    @model_validator(mode="after")
    def _belongs_to_its_stream(self) -> Self:
        if self.stream_id != session_stream(self.session_id):
            raise ValueError(f"stream {self.stream_id} is not the stream of session {self.session_id}")
        return self


class SystemEvent(Event):
    """An event in the one stream of the ledger itself (SPEC D2)."""

    @model_validator(mode="after")
    def _belongs_to_its_stream(self) -> Self:
        if self.stream_id != SYSTEM_STREAM:
            raise ValueError(f"stream {self.stream_id} is not the ledger's own stream")
        return self
