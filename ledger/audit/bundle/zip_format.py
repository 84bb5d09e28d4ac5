"""The zip of a bundle, byte by byte: every header follows from a member's name, sizes and sum, and nothing is optional.

So two bundles of the same members are the same bytes, and a header that could be read in two ways is none. Any program
that reads zip files reads these (APPNOTE.TXT, version 2.0: stored or deflated, no encryption, no extra fields).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

STORED, DEFLATED = 0, 8
RAW_DEFLATE = -15
"""zlib's window bits for a deflated member: no header of zlib's own."""

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
LOCAL_BYTES, CENTRAL_BYTES, END_BYTES = _LOCAL.size, _CENTRAL.size, _END.size

_NEEDED = 20
_MADE_BY = 3 << 8 | _NEEDED
_DATE = 1 << 5 | 1
"""1980-01-01, at midnight: when a member was made says nothing."""
_ATTRIBUTES = 0o100644 << 16
"""A plain file."""
_SAME_IN_ALL = (b"PK\1\2", _MADE_BY, _NEEDED, 0, 0, _DATE, 0, 0, 0, 0, _ATTRIBUTES)
"""What every entry of a directory has."""


class Entry(NamedTuple):
    """A member, as the zip's directory has it."""

    name: str
    method: int
    crc: int
    packed_bytes: int
    size_bytes: int
    offset: int
    """Where its local header begins."""

    @property
    def data_offset(self) -> int:
        """Where its packed bytes begin."""
        return self.offset + LOCAL_BYTES + len(self.name)

    @property
    def end(self) -> int:
        """Where the next header begins."""
        return self.data_offset + self.packed_bytes

    def local_header(self) -> bytes:
        """What is before the packed bytes."""
        sizes = (self.crc, self.packed_bytes, self.size_bytes, len(self.name), 0)
        return _LOCAL.pack(b"PK\3\4", _NEEDED, 0, self.method, 0, _DATE, *sizes) + self.name.encode("ascii")

    def central_header(self) -> bytes:
        """What the directory says of it."""
        sizes = (self.crc, self.packed_bytes, self.size_bytes, len(self.name), 0)
        places = (0, 0, 0, _ATTRIBUTES, self.offset)
        head = _CENTRAL.pack(b"PK\1\2", _MADE_BY, _NEEDED, 0, self.method, 0, _DATE, *sizes, *places)
        return head + self.name.encode("ascii")


def end_record(member_count: int, directory_bytes: int, directory_offset: int) -> bytes:
    """What a zip ends with."""
    return _END.pack(b"PK\5\6", 0, 0, member_count, member_count, directory_bytes, directory_offset, 0)


def parse_end(record: bytes) -> tuple[int, int, int]:
    """Number of members, size and place of the directory; not to be believed until `end_record` makes the same."""
    _, _, _, _, member_count, directory_bytes, directory_offset, _ = _END.unpack(record)
    return member_count, directory_bytes, directory_offset


def parse_central(directory: bytes, at: int) -> Entry:
    """The entry that begins there; `ValueError` unless it is what `central_header` makes of it."""
    if len(directory) < at + CENTRAL_BYTES:
        raise ValueError("the directory ends in the midst of an entry")
    fields = _CENTRAL.unpack_from(directory, at)
    method, crc, packed_bytes, size_bytes, name_bytes, offset = (fields[n] for n in (4, 7, 8, 9, 10, 16))
    name = directory[at + CENTRAL_BYTES : at + CENTRAL_BYTES + name_bytes].decode("ascii")
    if (*fields[:4], *fields[5:7], *fields[11:16]) != _SAME_IN_ALL or len(name) != name_bytes:
        raise ValueError(f"the entry for {name!r} is not written as bundles' are")
    return Entry(name, method, crc, packed_bytes, size_bytes, offset)
