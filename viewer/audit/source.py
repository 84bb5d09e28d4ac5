"""Where the audit pages read, and what they are told of the ledger beside a reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from ledger.audit.notes.notes import VerifierKey
from ledger.audit.signing.kept import read_keys
from ledger.audit.signing.keyring import default_key_path, public_keys
from ledger.audit.signing.stored import StoredCheckpoint, StoredTree
from ledger.errors import LedgerError
from ledger.records import RecordedEvent
from ledger.store.place import is_postgres, path_of

T = TypeVar("T")


class AuditReader(Protocol):
    """The part of `ledger.LedgerReader` that the audit pages use."""

    async def ledger_id(self) -> str:
        """The permanent id of the ledger."""

    async def last_leaf(self) -> int:
        """The place of the last event in the public order; -1 where there is none."""

    async def newest_checkpoint(self) -> StoredCheckpoint | None:
        """What was signed last; None if nothing ever was."""

    async def system_events(self, after_seq: int = ..., limit: int = ...) -> list[RecordedEvent]:
        """What was decided about the ledger itself after a position of that stream, in order."""

    async def on_tree(self, look: Callable[[StoredTree], T]) -> T:
        """Do it with the Merkle tree and the checkpoints of one moment."""

    async def status(self, session_id: str, run_id: str) -> str:
        """`RUNNING`, or how the run ended; an error with code `run_not_found`."""


@dataclass(frozen=True, slots=True)
class LedgerAddress:
    """What opens the ledger anew: to verify it in another process, and to make bundles."""

    url: str | Path
    public_key: Path | None = None
    """Public keys that bundles bring along; by default those of the private key beside a file, where it can be read."""

    def keys(self) -> Sequence[VerifierKey]:
        """The keys; none where none is at hand, and then no bundle has a checkpoint."""
        if self.public_key is not None:
            return read_keys(self.public_key)
        path = None if is_postgres(self.url) else default_key_path(path_of(self.url))
        try:
            return public_keys(path) if path is not None and path.exists() else ()
        except (LedgerError, OSError):
            return ()  # somebody else's: what it would add is not worth a server that reads private keys of others


class NoAddress(LedgerError):
    """The server was not told where the ledger is, so that it cannot open it anew."""

    code = "ledger_address_unknown"

    def __init__(self) -> None:
        super().__init__("this server was not told the ledger's address: use the command instead")


class TooBusy(LedgerError):
    """Others are at it."""

    code = "too_busy"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} at once: try again in a while")
