"""The contents that a stream's events name: few in memory, and many on disk, so that no stream takes more for long."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from harness.events import EVENT_TYPES
from ledger.stored_events import CONTENT_NAMES
from ledger.verifying.rows import use
from ledger.verifying.saying import Said

IN_MEMORY_MAX = 5_000
ALWAYS_STORED = ("comment", "rationale")
"""Texts of annotations, of which no event says so."""
CREATE = (
    "CREATE TEMP TABLE IF NOT EXISTS named"
    " (digest TEXT PRIMARY KEY, seq INTEGER NOT NULL, is_stored INTEGER NOT NULL, size_bytes INTEGER) WITHOUT ROWID"
)
EMPTY = "DELETE FROM named"
ADD = (
    "INSERT INTO named (digest, seq, is_stored, size_bytes) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (digest) DO UPDATE SET seq = min(seq, excluded.seq), is_stored = max(is_stored, excluded.is_stored),"
    " size_bytes = coalesce(size_bytes, excluded.size_bytes)"
)
TAKE = "DELETE FROM named WHERE digest = ? RETURNING seq, is_stored, size_bytes"
FIRST_LEFT = "SELECT digest, seq, is_stored, size_bytes FROM named ORDER BY seq LIMIT 1"


class Named(NamedTuple):
    """A content that events name."""

    seq: int
    """Of the first event that does."""
    is_stored: bool
    """Whether one of them says that its bytes are stored."""
    size_bytes: int | None = None
    """As the first says that does."""

    def plus(self, other: Named) -> Named:
        """With what a later event says."""
        size_bytes = other.size_bytes if self.size_bytes is None else self.size_bytes
        return Named(self.seq, self.is_stored or other.is_stored, size_bytes)


class Names:
    """What events name, until the content is found; `beside` is a database that is nobody's."""

    def __init__(self, beside: sqlite3.Connection) -> None:
        self._few: dict[str, Named] = {}
        self._has_many = False
        self._beside = beside

    def add_page(self, first_seq: int, events: Sequence[Said]) -> None:
        """What these events name, the first of which has that number in its stream."""
        for seq, event in enumerate(events, first_seq):
            for name, stored, size, is_always in _NAMED_BY.get(event.type, _ALL):
                digest = getattr(event, name, None)
                if digest is None:
                    continue
                known = self._few.get(digest)
                named = Named(seq, getattr(event, stored, is_always) is True, getattr(event, size, None))
                self._few[digest] = named if known is None else known.plus(named)
        if len(self._few) > IN_MEMORY_MAX:
            self._spill()

    def take(self, digest: str) -> Named | None:
        """How events name that content, which was found; None if none does."""
        if not self._has_many:
            return self._few.pop(digest, None)
        self._spill()
        row = self._beside.execute(TAKE, (digest,)).fetchone()
        return None if row is None else Named(row[0], bool(row[1]), row[2])

    def first_left(self) -> tuple[str, Named] | None:
        """The first that was named and not found."""
        if not self._has_many:
            return min(self._few.items(), key=lambda named: named[1].seq, default=None)
        self._spill()
        row = self._beside.execute(FIRST_LEFT).fetchone()
        return None if row is None else (row[0], Named(row[1], bool(row[2]), row[3]))

    def _spill(self) -> None:
        if not self._few:
            return
        if not self._has_many:
            use(self._beside)
            self._beside.execute(CREATE)
            self._beside.execute(EMPTY)
            self._has_many = True
        self._beside.executemany(ADD, [(digest, *named) for digest, named in self._few.items()])
        self._few.clear()


_ALL = tuple((f"{name}_digest", f"{name}_stored", f"{name}_bytes", name in ALWAYS_STORED) for name in CONTENT_NAMES)
_NAMED_BY = {
    event_type: tuple(fields for fields in _ALL if fields[0] in model.model_fields)
    for event_type, model in EVENT_TYPES.items()
}
"""By type: the fields of an event that name contents, each with those that say whether it is stored, and its size."""
