"""Whether the files that a writer has open are still those that whoever opens the ledger next will find."""

from __future__ import annotations

from pathlib import Path

from harness.errors import LedgerUnavailable
from ledger.store.place import file_at
from ledger.store.probe import is_whole


class OpenedFiles:
    """The database and its log, as a connection has them open; call everything with the write lock held."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log_path = Path(f"{path}-wal")
        self._file, self._log = file_at(path), file_at(self._log_path)
        self._size_bytes = path.stat().st_size

    def check(self) -> None:
        """Raise `LedgerUnavailable` if what is written now would be written where nobody finds it."""
        try:
            found = self._path.stat()
        except OSError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self._file:
            raise LedgerUnavailable("the file was replaced or removed")
        # One that was written anew may be shorter than before, but not than it says.
        if found.st_size < self._size_bytes and not is_whole(self._path):
            raise LedgerUnavailable("the file was cut short")
        self._size_bytes = found.st_size
        if file_at(self._log_path) != self._log:
            raise LedgerUnavailable("the write-ahead log was replaced or removed")
