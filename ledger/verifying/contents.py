"""One content: its bytes are those that its digest is of, or they are gone for good (SPEC E10)."""

from __future__ import annotations

from harness.content import Content, content_digest
from ledger.compression import DamagedContent, unpack
from ledger.deciding import ContentRow
from ledger.verifying.findings import Finding


def check(row: ContentRow) -> Finding | None:
    """What is wrong with the content, if anything is."""
    problem = _problem_of(row)
    return None if problem is None else Finding("content_damaged", f"content {row.digest} {problem}", row.stream_id)


def _problem_of(row: ContentRow) -> str | None:
    if row.state == "erased":
        return None if row.data is None and row.salt is None else "is said to be erased, and is not"
    if row.salt is None:
        return "has lost its salt"
    if row.state == "digest_only":
        return None if row.data is None else "is said to be a digest only, and is not"
    try:
        data = unpack(row.data or b"", row.encoding, row.size_bytes)
        if len(data) != row.size_bytes:
            return "has another size than is on record"
        if content_digest(row.salt, Content(data, row.media_type)) != row.digest:
            return "is not what its digest is of"
    except (DamagedContent, TypeError, ValueError) as error:
        return f"cannot be read ({str(error).partition(chr(10))[0]})"
    return None
