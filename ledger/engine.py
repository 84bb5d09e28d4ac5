"""What the facade needs of a ledger's engine, whichever database it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Protocol, TypeVar

from harness.journal import Journal, Recorded, Submission
from ledger.append.deciding import Draft
from ledger.audit.signing.store import TreeStore
from ledger.erasing.erasing import ErasingStore
from ledger.following.followers import FollowerPlaces
from ledger.measures import Measures
from ledger.reading.reader import LedgerReader
from ledger.rebuild import RebuildReport
from ledger.recovery import Recovery
from ledger.tokens.tokens import TokenStore

T = TypeVar("T")


class LedgerJournal(Journal, Protocol):
    """Where a harness records its runs, and the ledger what is said of them."""

    def submit(self, submission: Submission, *, seq_expected: int | None = None) -> Future[Recorded]:
        """As `Journal`. With `seq_expected`, `AppendConflict` unless the run is at that position."""

    def run(self, job: Callable[[Draft], T], run_ids: Sequence[str] = ()) -> Future[T]:
        """Write what `job` drafts, in turn; `run_ids` are the runs that it looks at, one at most."""

    def watch_ends(self, on_ended: Callable[[], None]) -> None:
        """Call `on_ended`, where the engine writes, after each transaction in which runs have ended."""

    def measures(self) -> Measures:
        """What was counted since the ledger was opened."""

    def close(self, timeout_s: float | None = None) -> None:
        """Write what was submitted, then stop; blocks."""


class Engine(Protocol):
    """An open ledger's parts. What is no coroutine blocks, and is called in a thread."""

    @property
    def writer(self) -> LedgerJournal: ...

    @property
    def reader(self) -> LedgerReader: ...

    @property
    def follower_places(self) -> FollowerPlaces: ...

    @property
    def tree(self) -> TreeStore: ...

    @property
    def tokens(self) -> TokenStore: ...

    @property
    def erasing(self) -> ErasingStore: ...

    def recover(self) -> Recovery:
        """End the runs whose owners are dead."""

    async def rebuild(self) -> RebuildReport:
        """Make every projection anew from events."""

    def close(self) -> None:
        """Write what was submitted, and let go of everything."""
