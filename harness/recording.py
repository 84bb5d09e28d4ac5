"""What is needed of a recorded run to execute it again: its events in order, and the contents that they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harness.errors import InvalidInput
from harness.events import Event, RunStarted


class RecordedContent(Protocol):
    """A content as its ledger has it today; a `SealedContent` is one."""

    @property
    def media_type(self) -> str: ...

    @property
    def data(self) -> bytes | None:
        """None where only the digest was kept, or the content was erased."""

    @property
    def salt(self) -> bytes | None:
        """That of its digest; None where the content was erased."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One run as it was recorded. `MemoryJournal` and `ledger.audit.recording` have what it is made of."""

    events: Sequence[Event]
    """All of the run's, in their order: the first has sequence number 1."""
    contents: Mapping[str, RecordedContent] = field(repr=False)
    """By digest; one that is missing counts as erased."""

    def __post_init__(self) -> None:
        if not self.events or not isinstance(self.events[0], RunStarted):
            raise InvalidInput("events", "must be all events of a run, of which run.started is the first")

    @property
    def started(self) -> RunStarted:
        """The run's beginning: who ran, for whom, within which limits."""
        first = self.events[0]
        assert isinstance(first, RunStarted), "it was checked"
        return first

    def text(self, digest: str | None) -> str | None:
        """A content as text, undecodable bytes replaced; None where there is none to be read."""
        content = None if digest is None else self.contents.get(digest)
        return None if content is None or content.data is None else content.data.decode("utf-8", "replace")
