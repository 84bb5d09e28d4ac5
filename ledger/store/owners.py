"""Who still lives: each open ledger holds a lock on a file of its own, which the kernel releases at its death."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from ledger.store.lock import FileLock


class Owners:
    """The folder of owner files beside a ledger. Call everything with the ledger's write lock held."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def register(self, owner_id: str) -> FileLock:
        """A new owner, alive for as long as the returned lock is open."""
        self._folder.mkdir(exist_ok=True)
        lock = FileLock(self._folder / owner_id)
        taken = lock.try_acquire()
        assert taken, "owner ids are unique"
        return lock

    def leave(self, lock: FileLock) -> None:
        """The owner goes; runs that it leaves behind may be recovered."""
        self._remove(lock.path)
        lock.close()

    @contextlib.contextmanager
    def proven_dead(self, owner_id: str) -> Iterator[bool]:
        """Whether the owner is dead, for as long as the block lasts; a missing file means that it left."""
        path = self._folder / owner_id
        if not path.exists():
            yield True
            return
        lock = FileLock(path)
        try:
            yield lock.try_acquire()
        finally:
            lock.close()

    def living(self) -> list[str]:
        """Owners that are alive."""
        found = sorted(path.name for path in self._folder.iterdir()) if self._folder.is_dir() else []
        living: list[str] = []
        for owner_id in found:
            with self.proven_dead(owner_id) as is_dead:
                if not is_dead:
                    living.append(owner_id)
        return living

    def sweep(self) -> None:
        """Remove the files of the dead."""
        if not self._folder.is_dir():
            return
        for path in list(self._folder.iterdir()):
            with self.proven_dead(path.name) as is_dead:
                if is_dead:
                    self._remove(path)

    def _remove(self, path: Path) -> None:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        with contextlib.suppress(OSError):
            self._folder.rmdir()
