"""What a reader needs of an engine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol, TypeVar

import sqlalchemy as sa

from ledger.errors import Place
from ledger.following.following import Tail
from ledger.following.lag import Unsequenced
from ledger.following.leaves import LeafQueries

# Who only reads needs nothing of what verifying takes.
if TYPE_CHECKING:
    from ledger.verifying.sharing import Verifiable

T = TypeVar("T")


class Reads(Protocol):
    """Where a reader reads."""

    @property
    def place(self) -> Place: ...

    @property
    def at_once(self) -> int:
        """Reads that it does at the same time."""

    @property
    def leaf_queries(self) -> LeafQueries:
        """How the public order is read."""

    def tail(self) -> Tail:
        """A watch of the log's end, in the running loop."""

    async def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Do it in a transaction that cannot write, and sees one moment."""

    async def close(self) -> None:
        """Let go of every connection; nothing is being read."""

    def verifiable(self) -> AbstractAsyncContextManager[Verifiable]:
        """The same ledger, over connections of their own, to be looked at from all sides."""

    def check(self) -> None:
        """Raise `LedgerUnreadable` if the ledger is not the one that was opened."""

    def wal_bytes(self) -> int | None:
        """Size of the log beside a file."""

    def unsequenced(self, connection: sa.Connection) -> Unsequenced | None:
        """What has no place in the public order yet; None where every event has its place at once."""
