"""The text of one log file, as far as it is read: the end of a plain one, a gzip file as it unpacks, both bounded.

What a gzip file unpacks to says nothing about its size, so both are bounded: few bytes can hold gigabytes, and
gigabytes can hold nothing. Neither is ever in memory as a whole.
"""

import io
import os
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from demo.bounds import LOG_FILE_BYTES_MAX, LOG_GZIP_TEXT_BYTES_MAX, LOG_LINE_BYTES_MAX

BINARY_PROBE_BYTES = 4096
GZIP_MAGIC = b"\x1f\x8b"
GZIP_WINDOW_BITS = zlib.MAX_WBITS | 16
"""Tells zlib to expect the header and the checksum of gzip (RFC 1952)."""
READ_BYTES = 64 * 1024


class DamagedGzip(OSError):
    """A gzip file that ends too early or does not unpack; what came before the damage is good."""


class LogText:
    """The lines of an open file, once; read it, then ask what was left out."""

    def __init__(self, stream: BinaryIO, room_bytes: int) -> None:
        """At most `room_bytes` of text are read from the file."""
        if os.pread(stream.fileno(), len(GZIP_MAGIC), 0) == GZIP_MAGIC:
            self._unpacking: _Unpacking | None = _Unpacking(stream)
            self._text: BinaryIO = io.BufferedReader(self._unpacking, READ_BYTES)
            self._left_bytes = min(LOG_GZIP_TEXT_BYTES_MAX, room_bytes)
            self.starts_within = False
        else:
            size_bytes = os.fstat(stream.fileno()).st_size
            start = max(0, size_bytes - min(LOG_FILE_BYTES_MAX, room_bytes))
            stream.seek(start)
            self._unpacking, self._text, self._left_bytes = None, stream, size_bytes - start
            self.starts_within = start > 0
            """Whether the beginning is left out, and with it the numbers of the lines."""
        self.size_bytes = 0
        """Text that was read until now."""

    @property
    def is_binary(self) -> bool:
        """Whether the first bytes hold a zero, as no text does; asked before anything is read."""
        assert isinstance(self._text, io.BufferedReader)
        return b"\0" in self._text.peek(BINARY_PROBE_BYTES)[:BINARY_PROBE_BYTES]

    @property
    def limit_reached(self) -> str | None:
        """Which bound left a part of the file out, if any; asked after everything was read."""
        if self._unpacking is None:
            return "file bytes" if self.starts_within else None
        return "gzip bytes" if self._unpacking.is_cut or (self._left_bytes <= 0 and self._text.read(1)) else None

    def lines(self) -> Iterator[bytes]:
        """The beginning of each line, with its end where that is near; `DamagedGzip` where no more can be read."""
        goes_on = self.starts_within
        while self._left_bytes > 0 and (piece := self._text.readline(min(self._left_bytes, LOG_LINE_BYTES_MAX))):
            self._left_bytes -= len(piece)
            self.size_bytes += len(piece)
            begins, goes_on = not goes_on, not piece.endswith(b"\n")
            if begins:
                yield piece


class _Unpacking(io.RawIOBase):
    """What the members of a gzip file hold, one after the other, from at most so many bytes of the file."""

    def __init__(self, packed: BinaryIO) -> None:
        self._packed = packed
        self._left_bytes = LOG_FILE_BYTES_MAX
        self._member = zlib.decompressobj(GZIP_WINDOW_BITS)
        self._waiting = b""
        self.is_cut = False
        """Whether the file holds more than is read of it."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # BufferedReader gives a memoryview
        while True:
            if self._member.eof:
                # Some pad the last member with zeros.
                rest = (self._member.unused_data or self._read()).lstrip(b"\0")
                if not rest:
                    return 0
                self._member, self._waiting = zlib.decompressobj(GZIP_WINDOW_BITS), rest
            packed = self._waiting or self._read()
            try:
                text = self._member.decompress(packed, len(buffer))
            except zlib.error as error:
                raise DamagedGzip("damaged gzip") from error
            self._waiting = self._member.unconsumed_tail
            if text:
                buffer[: len(text)] = text
                return len(text)
            if not packed and not self._member.eof:
                if self.is_cut:
                    return 0
                raise DamagedGzip("gzip that ends too early")

    def _read(self) -> bytes:
        if self._left_bytes <= 0:
            self.is_cut = self.is_cut or bool(self._packed.read(1))
            return b""
        packed = self._packed.read(min(self._left_bytes, READ_BYTES))
        self._left_bytes -= len(packed)
        return packed
