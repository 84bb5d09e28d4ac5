"""Cursors of lists: opaque to whoever gets one, and checked when they come back."""

from __future__ import annotations

import base64
import binascii
from dataclasses import astuple, dataclass
from typing import TypeVar

from harness.errors import InvalidInput
from harness.events.base import MAX_SAFE_INTEGER
from harness.ids import check_id
from ledger.errors import InvalidCursor

MAX_CURSOR_CHARS = 300
OF_RUNS = "1"
OF_SESSIONS = "s1"
LOWEST_ID = "0"
"""No id comes before it."""


@dataclass(frozen=True, slots=True)
class RunCursor:
    """The last run of a page; the next page holds what is older."""

    created_us: int
    run_id: str

    def encode(self) -> str:
        """The cursor as it is given out."""
        return _encode(OF_RUNS, self.created_us, self.run_id)

    @classmethod
    def decode(cls, text: str) -> RunCursor:
        """The cursor that `text` is; `InvalidCursor` if it is none."""
        return cls(*_decode(OF_RUNS, text))


@dataclass(frozen=True, slots=True)
class SessionCursor:
    """The last session of a page; the next page holds those that were active before."""

    last_active_us: int
    session_id: str

    def encode(self) -> str:
        """The cursor as it is given out."""
        return _encode(OF_SESSIONS, self.last_active_us, self.session_id)

    @classmethod
    def decode(cls, text: str) -> SessionCursor:
        """The cursor that `text` is; `InvalidCursor` if it is none."""
        return cls(*_decode(OF_SESSIONS, text))


Cursor = TypeVar("Cursor", RunCursor, SessionCursor)


def unnamed(found: list[Cursor], last: Cursor, after: Cursor | None) -> tuple[list[Cursor], Cursor]:
    """What a page holds whose search was cut at `last`, and where the next one begins: a time, and nobody's name.

    The page is for somebody who is told of some sessions alone, and `last` may be of another. What was found of the
    same microsecond is left to the next page, which looks at all of it; unless it were to begin where this one did.
    """
    time_us, _ = astuple(last)
    place = type(last)(time_us + 1, LOWEST_ID)
    if last in found or (after is not None and astuple(after) <= astuple(place)):
        return found, last
    return [one for one in found if astuple(one)[0] > time_us], place


def _encode(kind: str, time_us: int, key: str) -> str:
    return base64.urlsafe_b64encode(f"{kind}:{time_us}:{key}".encode("ascii")).rstrip(b"=").decode()


def _decode(kind: str, text: str) -> tuple[int, str]:
    try:
        if len(text) > MAX_CURSOR_CHARS:
            raise ValueError
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        of, time_us, key = base64.b64decode(padded, altchars=b"-_", validate=True).decode().split(":", 2)
        place = int(time_us), check_id("cursor", key)
        if of != kind or _encode(kind, *place) != text or abs(place[0]) > MAX_SAFE_INTEGER:
            raise ValueError
    except (ValueError, binascii.Error, InvalidInput) as error:
        raise InvalidCursor(text) from error
    return place
