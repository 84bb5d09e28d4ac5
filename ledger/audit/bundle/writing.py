"""Writes the zip of a bundle: members one after the other, each as tightly packed as a reader will take it."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator
from hashlib import sha256
from typing import BinaryIO

from ledger.audit.bundle import limits, zip_format
from ledger.audit.bundle.errors import BundleTooLarge
from ledger.audit.bundle.zip_format import DEFLATED, STORED, Entry

LEVEL = 6
PACK_FROM_BYTES = 256
"""A smaller member is stored as it is."""


class MemberWriter:
    """Takes a member's bytes in any pieces."""

    def __init__(self, file: BinaryIO, name: str, *, is_packed: bool) -> None:
        self._file = file
        self._entry = Entry(name, DEFLATED if is_packed else STORED, 0, 0, 0, file.tell())
        self._packing = zlib.compressobj(LEVEL, zlib.DEFLATED, zip_format.RAW_DEFLATE) if is_packed else None
        self._hash = sha256()
        self._size_bytes = self._crc = 0
        file.write(self._entry.local_header())

    @property
    def size_bytes(self) -> int:
        """Of what was written so far, unpacked."""
        return self._size_bytes

    @property
    def digest(self) -> str:
        """SHA-256 of what was written so far, in hexadecimal."""
        return self._hash.hexdigest()

    def write(self, data: bytes) -> None:
        """Add to the member."""
        self._size_bytes += len(data)
        self._crc = zlib.crc32(data, self._crc)
        self._hash.update(data)
        self._file.write(data if self._packing is None else self._packing.compress(data))

    def end(self) -> Entry:
        """Nothing follows; the header before the bytes now says what they are."""
        if self._packing is not None:
            self._file.write(self._packing.flush())
        packed_bytes = self._file.tell() - self._entry.data_offset
        if self._size_bytes > limits.RATIO_FREE_BYTES + limits.MAX_RATIO * packed_bytes:
            packed_bytes = self._unpack(packed_bytes)
        if max(packed_bytes, self._size_bytes, self._file.tell()) > limits.MAX_FILE_BYTES:
            raise BundleTooLarge("bytes", count=self._file.tell(), limit=limits.MAX_FILE_BYTES)
        entry = self._entry._replace(crc=self._crc, packed_bytes=packed_bytes, size_bytes=self._size_bytes)
        self._file.seek(entry.offset)
        self._file.write(entry.local_header())
        self._file.seek(entry.end)
        return entry

    def _unpack(self, packed_bytes: int) -> int:
        """Store as it is what a reader would take for a bomb; its size."""
        self._file.seek(self._entry.data_offset)
        packed = self._file.read(packed_bytes)
        self._file.seek(self._entry.data_offset)
        inflating = zlib.decompressobj(zip_format.RAW_DEFLATE)
        while chunk := inflating.decompress(packed, limits.CHUNK_BYTES):
            self._file.write(chunk)
            packed = inflating.unconsumed_tail
        self._entry = self._entry._replace(method=STORED)
        return self._size_bytes


class ArchiveWriter:
    """A zip in a new file that is open for writing and reading; `end` makes it whole."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._entries: list[Entry] = []
        self._unpacked_bytes = 0

    @contextlib.contextmanager
    def member(self, name: str, *, is_packed: bool = True) -> Iterator[MemberWriter]:
        """The next member, to be written to; one at a time."""
        writer = MemberWriter(self._file, name, is_packed=is_packed)
        yield writer
        self._entries.append(writer.end())
        self._unpacked_bytes += writer.size_bytes
        if len(self._entries) > limits.MAX_MEMBERS:
            raise BundleTooLarge("members", count=len(self._entries), limit=limits.MAX_MEMBERS)
        if self._unpacked_bytes > limits.MAX_UNPACKED_BYTES:
            raise BundleTooLarge("bytes unpacked", count=self._unpacked_bytes, limit=limits.MAX_UNPACKED_BYTES)

    def add(self, name: str, data: bytes) -> None:
        """A member that is at hand."""
        with self.member(name, is_packed=len(data) >= PACK_FROM_BYTES) as writer:
            writer.write(data)

    def end(self) -> None:
        """No member follows."""
        offset = self._file.tell()
        for entry in self._entries:
            self._file.write(entry.central_header())
        directory_bytes = self._file.tell() - offset
        self._file.write(zip_format.end_record(len(self._entries), directory_bytes, offset))
        if self._file.tell() > limits.MAX_FILE_BYTES:
            raise BundleTooLarge("bytes", count=self._file.tell(), limit=limits.MAX_FILE_BYTES)
