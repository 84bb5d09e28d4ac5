"""Reads the zip of a bundle from a file that nobody has to be trusted for.

What is in it must be written exactly as `zip_format` writes it: members one after the other from the first byte on,
then the directory, then the end. That leaves no room for overlaps, hidden data, links, encryption or second headers.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from types import MappingProxyType
from typing import BinaryIO

from ledger.audit.bundle import limits, zip_format
from ledger.audit.bundle.errors import BundleWrong, InvalidBundle
from ledger.audit.bundle.zip_format import DEFLATED, STORED, Entry

NAME = re.compile(r"[a-z][a-z.-]*|content/[0-9a-f]{64}")
"""A name that can be a member's: no path leads anywhere but into one folder."""


class Archive:
    """The members of a bundle; opening reads the directory only. `InvalidBundle` unless all is in order."""

    def __init__(self, file: BinaryIO, on_bytes: Callable[[int], None] = lambda _: None) -> None:
        """`on_bytes` is told how many bytes were unpacked, whenever some were."""
        self._descriptor = file.fileno()
        self._on_bytes = on_bytes
        self.entries = MappingProxyType(_directory_of(self._descriptor))
        self.size_bytes = sum(entry.size_bytes for entry in self.entries.values())
        """Of all members, unpacked."""

    def chunks(self, name: str, digest: str | None = None) -> Iterator[bytes]:
        """The member's bytes, piece by piece; `BundleWrong` at their end unless they have this SHA-256."""
        entry = self._entry(name)
        size_bytes, crc, hashed = 0, 0, sha256()
        for chunk in _packed(self._descriptor, entry) if entry.method == STORED else _inflated(self._descriptor, entry):
            size_bytes += len(chunk)
            if size_bytes > entry.size_bytes:
                raise InvalidBundle(f"has more in {name} than its directory says")
            crc = zlib.crc32(chunk, crc)
            if digest is not None:
                hashed.update(chunk)
            self._on_bytes(len(chunk))
            yield chunk
        if size_bytes != entry.size_bytes:
            raise InvalidBundle(f"has less in {name} than its directory says")
        if crc != entry.crc:
            raise BundleWrong("member_differs", name, "its bytes are not those that were packed")
        if digest is not None and digest != hashed.hexdigest():
            raise BundleWrong("member_differs", name, "its SHA-256 is not the one in the manifest")

    def read(self, name: str, size_max: int, digest: str | None = None) -> bytes:
        """The whole member, which may have this many bytes."""
        self.require(name, size_max)
        return b"".join(self.chunks(name, digest))

    def lines(self, name: str, size_max: int, digest: str | None = None) -> Iterator[bytes]:
        """The member's lines with their ends, none of which may have more bytes than that."""
        rest = b""
        for chunk in self.chunks(name, digest):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if len(line) >= size_max:
                    raise InvalidBundle(f"has a line of more than {size_max:,} bytes in {name}")
                yield line + b"\n"
            if len(rest) >= size_max:
                raise InvalidBundle(f"has a line of more than {size_max:,} bytes in {name}")
        if rest:
            raise InvalidBundle(f"has a last line in {name} that does not end")

    def require(self, name: str, size_max: int) -> None:
        """Refuse a member that has more bytes than that, before any is read."""
        size_bytes = self._entry(name).size_bytes
        if size_bytes > size_max:
            raise InvalidBundle(f"has {size_bytes:,} bytes in {name}, and {size_max:,} is the limit")

    def _entry(self, name: str) -> Entry:
        entry = self.entries.get(name)
        if entry is None:
            raise BundleWrong("member_missing", name, "there is no such member")
        return entry


def _directory_of(descriptor: int) -> dict[str, Entry]:
    file_bytes = os.fstat(descriptor).st_size
    if not zip_format.END_BYTES <= file_bytes <= limits.MAX_FILE_BYTES:
        raise InvalidBundle(f"has {file_bytes:,} bytes, which no bundle has")
    end = _exactly(descriptor, zip_format.END_BYTES, file_bytes - zip_format.END_BYTES)
    member_count, directory_bytes, directory_offset = zip_format.parse_end(end)
    if member_count > limits.MAX_MEMBERS:
        raise InvalidBundle(f"claims to have more than {limits.MAX_MEMBERS:,} members")
    if (
        end != zip_format.end_record(member_count, directory_bytes, directory_offset)
        or directory_offset + directory_bytes + zip_format.END_BYTES != file_bytes
        or directory_bytes > member_count * (zip_format.CENTRAL_BYTES + limits.MAX_NAME_BYTES)
    ):
        raise InvalidBundle("is no zip that ends as bundles do")
    directory = _exactly(descriptor, directory_bytes, directory_offset)
    entries = _entries_in(directory, member_count)
    if (next(reversed(entries.values())).end if entries else 0) != directory_offset:
        raise InvalidBundle("has something between its members and its directory")
    _refuse_bombs(entries.values())
    return entries


def _entries_in(directory: bytes, member_count: int) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    at = offset = 0
    for _ in range(member_count):
        try:
            entry = zip_format.parse_central(directory, at)
        except ValueError as error:
            raise InvalidBundle(f"has a directory that cannot be read: {error}") from None
        if not NAME.fullmatch(entry.name) or entry.method not in (STORED, DEFLATED):
            raise InvalidBundle("has a member with a name or a packing that no member has")
        if entry.name in entries:
            raise InvalidBundle(f"has two members named {entry.name}")
        if entry.offset != offset:
            raise InvalidBundle(f"has something before {entry.name}, or has it within another member")
        entries[entry.name] = entry
        at += zip_format.CENTRAL_BYTES + len(entry.name)
        offset = entry.end
    if at != len(directory):
        raise InvalidBundle("has more in its directory than it says")
    return entries


def _refuse_bombs(entries: Iterable[Entry]) -> None:
    unpacked_bytes = 0
    for entry in entries:
        unpacked_bytes += entry.size_bytes
        if entry.size_bytes > limits.RATIO_FREE_BYTES + limits.MAX_RATIO * entry.packed_bytes:
            raise InvalidBundle(f"has {entry.name} packed {limits.MAX_RATIO} times smaller or more")
        if entry.method == STORED and entry.size_bytes != entry.packed_bytes:
            raise InvalidBundle(f"has {entry.name} stored as it is, with two sizes")
    if unpacked_bytes > limits.MAX_UNPACKED_BYTES:
        raise InvalidBundle(f"unpacks to {unpacked_bytes:,} bytes, and {limits.MAX_UNPACKED_BYTES:,} is the limit")


def _packed(descriptor: int, entry: Entry) -> Iterator[bytes]:
    """A member's bytes as they are packed, once its local header is known to be the one that the directory means."""
    header = entry.local_header()
    first_bytes = min(limits.CHUNK_BYTES, entry.packed_bytes)
    first = _exactly(descriptor, len(header) + first_bytes, entry.offset)
    if not first.startswith(header):
        raise InvalidBundle(f"has two headers of {entry.name} that differ")
    if first_bytes:
        yield first[len(header) :]
    for at in range(entry.data_offset + first_bytes, entry.end, limits.CHUNK_BYTES):
        yield _exactly(descriptor, min(limits.CHUNK_BYTES, entry.end - at), at)


def _inflated(descriptor: int, entry: Entry) -> Iterator[bytes]:
    inflating = zlib.decompressobj(zip_format.RAW_DEFLATE)
    try:
        for packed in _packed(descriptor, entry):
            if inflating.eof:
                raise InvalidBundle(f"has something after the packed bytes of {entry.name}")
            yield inflating.decompress(packed, limits.CHUNK_BYTES)
            while inflating.unconsumed_tail:
                yield inflating.decompress(inflating.unconsumed_tail, limits.CHUNK_BYTES)
        while chunk := inflating.decompress(b"", limits.CHUNK_BYTES):
            yield chunk
    except zlib.error as error:
        raise BundleWrong("member_differs", entry.name, f"it cannot be unpacked ({error})") from None
    if not inflating.eof or inflating.unused_data:
        raise InvalidBundle(f"has packed bytes of {entry.name} that do not end where they should")


def _exactly(descriptor: int, size_bytes: int, offset: int) -> bytes:
    data = os.pread(descriptor, size_bytes, offset)
    if len(data) != size_bytes:
        raise InvalidBundle("ends before it should")
    return data
