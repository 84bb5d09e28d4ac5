"""Big contents are stored smaller, and read back exactly or not at all.

The digest is of what was captured, and so is `size_bytes`; how it is stored is nobody's business but this module's.
The beginning is a block of its own, so that a preview needs the first few hundred bytes of a content, packed or not.
"""

from __future__ import annotations

import zstandard

from ledger.sizes import MAX_CONTENT_BYTES

ZSTD = "zstd"
LEVEL = 3
PACK_FROM_BYTES = 4_096
"""Smaller contents are stored as they are."""
GAIN_MIN_BYTES = 512
"""What packing has to save, or the content is stored as it is."""
PREVIEW_BYTES = 800
"""The beginning of a content that can be read by itself;"""
PREVIEW_STORED_BYTES = 1_024
"""this much of what is stored is enough for it."""

WINDOW_BYTES_MAX = 8 * 1024 * 1024
"""Memory that reading a beginning may take; packing never asks for more."""


class DamagedContent(ValueError):
    """What is stored of a content is not what was packed."""


def pack(data: bytes) -> tuple[bytes, str | None]:
    """The data as they are stored, and how they are packed, if they are."""
    if len(data) < PACK_FROM_BYTES:
        return data, None
    packing = zstandard.ZstdCompressor(level=LEVEL).compressobj(size=len(data))
    beginning = packing.compress(data[:PREVIEW_BYTES]) + packing.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    packed = beginning + packing.compress(data[PREVIEW_BYTES:]) + packing.flush()
    return (packed, ZSTD) if len(packed) + GAIN_MIN_BYTES <= len(data) else (data, None)


def unpack(stored: bytes, encoding: str | None, size_bytes: int) -> bytes:
    """The data of which that was stored; never more than `size_bytes`, whatever the stored bytes claim to hold."""
    if encoding is None:
        return stored
    if encoding != ZSTD or not 0 <= size_bytes <= MAX_CONTENT_BYTES:
        raise DamagedContent(f"packed as {encoding}, {size_bytes} bytes")
    try:
        # The size that a frame claims is taken at its word, so it must be the one that is on record.
        if zstandard.get_frame_parameters(stored).content_size != size_bytes:
            raise DamagedContent("another size than is on record")
        data = zstandard.ZstdDecompressor().decompress(stored, max_output_size=size_bytes, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise DamagedContent(str(error)) from error
    if len(data) != size_bytes:
        raise DamagedContent(f"{len(data)} bytes instead of {size_bytes}")
    return data


def unpack_beginning(stored: bytes, encoding: str | None, size_bytes: int = PREVIEW_BYTES) -> bytes:
    """The first bytes of the data; for `PREVIEW_BYTES` of them `PREVIEW_STORED_BYTES` of what is stored are enough."""
    if encoding is None:
        return stored[:size_bytes]
    if encoding != ZSTD:
        raise DamagedContent(f"packed as {encoding}")
    try:
        with zstandard.ZstdDecompressor(max_window_size=WINDOW_BYTES_MAX).stream_reader(stored) as reading:
            return reading.read(size_bytes)
    except zstandard.ZstdError as error:
        raise DamagedContent(str(error)) from error
