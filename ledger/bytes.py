"""The bytes that are stored and hashed, exactly (SPEC D9, D21).

A body is JSON with sorted ASCII keys, which for what an event may hold is RFC 8785. It is made once, stored as it is,
hashed as it is stored, and never made again.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import orjson

from harness.events import Event
from ledger.errors import TooLarge
from ledger.sizes import MAX_BODY_BYTES

HASH_VERSION = 1

BODY_DOMAIN = b"tachograph/body/v1\0"
LINK_DOMAIN = b"tachograph/link/v1\0"
CASE_DOMAIN = b"tachograph/case/v1\0"
GENESIS_DOMAIN = b"tachograph/genesis/v1\0"
_PLACE = struct.Struct(">QQ")


def body_of(event: Event) -> bytes:
    """The event as it is stored, without what is unknown; `TooLarge` above `MAX_BODY_BYTES`."""
    # Fields are plain values and flat maps (SPEC D9), so there is nothing in them that a model would have to dump.
    known = {name: value for name, value in vars(event).items() if value is not None}
    body = orjson.dumps(known, default=_plain_map, option=orjson.OPT_SORT_KEYS)
    if len(body) > MAX_BODY_BYTES:
        raise TooLarge(f"event {event.type}", size_bytes=len(body), limit_bytes=MAX_BODY_BYTES)
    # What is made there keeps room for more, ten times what is needed; it may wait for long.
    return bytes(memoryview(body))


def _plain_map(value: object) -> dict[str, Any]:
    """What a map of another type holds, such as one that is read-only."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"an event holds no {type(value).__name__}")


def body_hash(body: bytes) -> bytes:
    """SHA-256 of the stored body."""
    return sha256(BODY_DOMAIN + body).digest()


def genesis_link(ledger_id: str, stream_id: str) -> bytes:
    """What the first event of a stream is linked to: it binds the ledger and the stream."""
    return sha256(GENESIS_DOMAIN + ledger_id.encode("ascii") + b"\0" + stream_id.encode("ascii")).digest()


def next_link(prev_link: bytes, seq: int, recorded_us: int, hash_of_body: bytes) -> bytes:
    """The link of an event: it commits to everything before it in its stream."""
    return sha256(LINK_DOMAIN + prev_link + _PLACE.pack(seq, recorded_us) + hash_of_body).digest()


def case_id_of(run_id: str) -> str:
    """The id of the one case that can come of a run."""
    return f"case-{sha256(CASE_DOMAIN + run_id.encode('ascii')).hexdigest()}"


def canonical(value: object) -> str:
    """A JSON column's text: sorted keys, no spaces, ASCII for what events may hold (SPEC D18)."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode("ascii")
