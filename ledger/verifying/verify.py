"""Verifies a ledger stream by stream, then row by row, while others may go on appending.

Each stream is looked at as of one moment, so what is appended meanwhile is either part of it or not. Nothing is kept
of a stream once it was looked at, so memory does not grow with the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from harness.ids import run_stream, session_stream
from ledger.rebuild import Kind, Rebuilt
from ledger.store.place import is_postgres, path_of
from ledger.verifying.findings import FINDINGS_MAX, Finding, VerifyReport

KINDS: tuple[Kind, ...] = ("run", "session")


class Checked(NamedTuple):
    """What a stream and its contents turned out to be."""

    stream_id: str
    event_count: int
    content_count: int
    findings: tuple[Finding, ...]


class Verifiable(Protocol):
    """A ledger that can be looked at. Each call is of one moment, or of one for each stream."""

    @property
    def ledger_id(self) -> str: ...

    async def count_streams(self) -> int:
        """How many there are, to know how far it is."""

    async def check(self, after: str) -> Sequence[Checked]:
        """The next streams, in the order of their ids."""

    async def compare(self, kind: Kind, after: str) -> tuple[str, Sequence[Rebuilt]]:
        """As `ledger.rebuild.Source`."""

    async def strays(self) -> Sequence[Finding]:
        """Gaps in the log, events of no stream, and rows of runs and sessions that the log does not know."""


@dataclass(slots=True)
class _Tally:
    event_count: int = 0
    stream_count: int = 0
    content_count: int = 0
    row_count: int = 0
    findings: list[Finding] = field(default_factory=list)
    finding_count: int = 0

    def found(self, findings: Sequence[Finding]) -> None:
        self.finding_count += len(findings)
        self.findings += findings[: FINDINGS_MAX - len(self.findings)]


Progress = Callable[[int, int], None]
"""Hears how many steps are done, and of how many."""


async def verify(url: str | Path, on_progress: Progress = lambda _done, _of: None) -> VerifyReport:
    """Verify the ledger at that address, which is opened for reading only; a `LedgerFileError` if there is none."""
    async with _opened(url) as ledger:
        return await verify_all(ledger, on_progress)


async def verify_all(ledger: Verifiable, on_progress: Progress = lambda _done, _of: None) -> VerifyReport:
    """Verify everything."""
    tally, done = _Tally(), 0
    step_count = 2 * await ledger.count_streams()
    last = ""
    while page := await ledger.check(last):
        last = page[-1].stream_id
        for checked in page:
            tally.stream_count += 1
            tally.event_count += checked.event_count
            tally.content_count += checked.content_count
            tally.found(checked.findings)
        done += len(page)
        on_progress(done, max(step_count, done))
    for kind in KINDS:
        last, rows = await ledger.compare(kind, "")
        while rows:
            for row in rows:
                tally.row_count += row.row_count
                if not row.is_right:
                    stream_id = run_stream(row.key) if kind == "run" else session_stream(row.key)
                    tally.found([Finding("row_differs", f"not as its events add up to: {row.difference}", stream_id)])
            done += len(rows)
            on_progress(done, max(step_count, done))
            last, rows = await ledger.compare(kind, last)
    tally.found(await ledger.strays())
    on_progress(done, done)
    return VerifyReport(
        ledger_id=ledger.ledger_id,
        event_count=tally.event_count,
        stream_count=tally.stream_count,
        content_count=tally.content_count,
        row_count=tally.row_count,
        findings=tuple(tally.findings),
        finding_count=tally.finding_count,
    )


def _opened(url: str | Path) -> AbstractAsyncContextManager[Verifiable]:
    # An engine is imported only where it is used: its driver may not be installed.
    if is_postgres(url):
        from ledger.store.postgres.verifying import opened_postgres

        return opened_postgres(str(url))
    from ledger.store.verifying import opened_sqlite

    return opened_sqlite(path_of(url))
