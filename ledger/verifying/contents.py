"""Contents: the bytes are those that the digest is of, or they are gone for good, and an event says so (SPEC E10)."""

from __future__ import annotations

from harness.content import Content, content_digest
from ledger.compression import DamagedContent, unpack
from ledger.deciding import ContentRow
from ledger.verifying.chain import Chain
from ledger.verifying.findings import FINDINGS_MAX, Finding


class Contents:
    """The contents of a stream whose events have all been seen."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._erased_counts: dict[int | None, int] = {}
        self.count = 0
        self.findings: list[Finding] = []

    def add(self, row: ContentRow, erased_seq: int | None) -> None:
        """The next content, and the number of the event that says that it was erased."""
        self.count += 1
        problem = _problem_of(row)
        if problem is None and row.state == "erased":
            self._erased_counts[erased_seq] = self._erased_counts.get(erased_seq, 0) + 1
            if self._chain.finding is None and erased_seq not in self._chain.erased_counts:
                problem = "is said to be erased, and no event says so"
        if problem is not None and len(self.findings) < FINDINGS_MAX:
            self.findings.append(Finding("content_damaged", f"content {row.digest} {problem}", row.stream_id))

    def end(self) -> None:
        """No content follows: as many are erased as the events say."""
        if self._chain.finding is not None:
            return
        for seq, said in self._chain.erased_counts.items():
            found = self._erased_counts.get(seq, 0)
            if found != said and len(self.findings) < FINDINGS_MAX:
                detail = f"{found} contents are said to have been erased by it, and it says {said}"
                self.findings.append(Finding("content_damaged", detail, self._chain.stream_id, seq))


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
