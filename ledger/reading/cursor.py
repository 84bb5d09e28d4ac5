"""Cursors of run lists: opaque to whoever gets one, and checked when they come back."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from harness.errors import InvalidInput
from harness.events.base import MAX_SAFE_INTEGER
from harness.ids import check_id
from ledger.errors import InvalidCursor

MAX_CURSOR_CHARS = 300


@dataclass(frozen=True, slots=True)
class RunCursor:
    """The last run of a page; the next page holds what is older."""

    created_us: int
    run_id: str

    def encode(self) -> str:
        """The cursor as it is given out."""
        return base64.urlsafe_b64encode(f"1:{self.created_us}:{self.run_id}".encode("ascii")).rstrip(b"=").decode()

    @classmethod
    def decode(cls, text: str) -> RunCursor:
        """The cursor that `text` is; `InvalidCursor` if it is none."""
        try:
            if len(text) > MAX_CURSOR_CHARS:
                raise ValueError
            padded = text.encode("ascii") + b"=" * (-len(text) % 4)
            version, created_us, run_id = base64.b64decode(padded, altchars=b"-_", validate=True).decode().split(":", 2)
            cursor = cls(int(created_us), check_id("run_id", run_id))
            if version != "1" or cursor.encode() != text or abs(cursor.created_us) > MAX_SAFE_INTEGER:
                raise ValueError
        except (ValueError, binascii.Error, InvalidInput) as error:
            raise InvalidCursor(text) from error
        return cursor
