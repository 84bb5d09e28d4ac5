"""An event in a bundle is one line: place, number, time of recording, link, and the body, byte by byte as stored."""

from __future__ import annotations

import re
from binascii import unhexlify
from typing import Any, NamedTuple

import orjson

from harness.ids import ID_PATTERN
from ledger.audit.bundle.errors import BundleWrong
from ledger.bytes import body_hash, next_link

_NUMBER = rb"(0|[1-9][0-9]{0,15})"
_LINE = re.compile(rb"(?:-|%b) %b %b ([0-9a-f]{64}) (\{[ -~]*\})\n" % (_NUMBER, _NUMBER, _NUMBER))
STREAM_ID = re.compile(f"sys|[rs]:{ID_PATTERN}")
_HEAD = re.compile(rb"(%b) %b ([0-9a-f]{64})\n" % (STREAM_ID.pattern.encode(), _NUMBER))
"""A stream before the first event that a period has of it: how many it had, and the link of the last."""


class EventLine(NamedTuple):
    """An event as its line has it; nothing of it was checked."""

    leaf_index: int | None
    """Its place in the public order; None if it had none yet."""
    seq: int
    recorded_us: int
    link: bytes
    body: bytes

    def line(self) -> bytes:
        """The line, with its end."""
        place = b"-" if self.leaf_index is None else b"%d" % self.leaf_index
        return b"%b %d %d %b %b\n" % (place, self.seq, self.recorded_us, self.link.hex().encode(), self.body)

    def require_linked(self, before: bytes, number: int) -> None:
        """`BundleWrong` unless the link of this event, the `number`th of the bundle, follows from that before it."""
        if self.link != next_link(before, self.seq, self.recorded_us, body_hash(self.body)):
            detail = "its link does not follow from its body, its time and the event before"
            raise BundleWrong("link_broken", f"event {number}", detail)


def parse_event_line(line: bytes, number: int) -> EventLine:
    """The event whose line that is, the `number`th; `BundleWrong` if it is none."""
    found = _LINE.fullmatch(line)
    if found is None:
        raise BundleWrong("event_malformed", f"event {number}", "its line is not that of an event")
    place, seq, recorded_us, link, body = found.groups()
    leaf_index = None if place is None else int(place)
    return EventLine(leaf_index, int(seq), int(recorded_us), unhexlify(link), body)


def fields_in(body: bytes, place: str) -> dict[str, Any]:
    """What the event says; `BundleWrong` where it is not written in the one way, and might be read in two (D9)."""
    try:
        fields: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        fields = None
    if not isinstance(fields, dict) or orjson.dumps(fields, option=orjson.OPT_SORT_KEYS) != body:
        raise BundleWrong("event_unreadable", place, "its body is not written as events are")
    return fields


def head_line(stream_id: str, seq: int, link: bytes) -> bytes:
    """A stream's head before a period."""
    return f"{stream_id} {seq} {link.hex()}\n".encode("ascii")


def parse_head_line(line: bytes) -> tuple[str, int, bytes]:
    """The stream's id, number and link of its last event; `BundleWrong` if that is no such line."""
    found = _HEAD.fullmatch(line)
    if found is None:
        raise BundleWrong("event_malformed", "heads.txt", "a line is not that of a stream")
    stream_id, seq, link = (group.decode() for group in found.groups())
    return stream_id, int(seq), bytes.fromhex(link)
