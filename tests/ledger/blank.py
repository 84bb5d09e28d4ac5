"""An empty ledger to copy, since migrating one takes longer than most tests."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from ledger.migrate import ensure_current, lock_of


@functools.cache
def _blank_ledger() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "blank.db"
        lock = lock_of(path)
        ensure_current(path, lock)
        lock.close()
        return path.read_bytes()


def blank_at(path: Path) -> Path:
    """A ledger without a run at `path`."""
    path.write_bytes(_blank_ledger())
    return path
