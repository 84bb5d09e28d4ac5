"""Verifies a ledger stream by stream, then what belongs to none, while others may go on appending.

Each stream is looked at as of one moment, so what is appended meanwhile is either part of it or not.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

from ledger.verifying.findings import Tally, VerifyReport
from ledger.verifying.sharing import Verifiable, check_all, opened

Progress = Callable[[int, int], None]
"""Hears how many events were looked at, and of how many."""


def _nothing(_done: int, _of: int) -> None:
    """Nobody wants to hear how far it is."""


async def verify(url: str | Path, on_progress: Progress = _nothing, *, jobs: int = 1) -> VerifyReport:
    """Verify the ledger at that address, which is opened for reading only; a `LedgerFileError` if there is none.

    With more than one of `jobs`, other processes help with a large one. They are spawned, so a program that asks for
    them must be one that can be imported (`if __name__ == "__main__"`).
    """
    async with opened(url) as ledger:
        tally, done = Tally(), 0
        shares = await ledger.shares()
        event_count = sum(share.event_count for share in shares)
        async with aclosing(check_all(url, ledger, shares, jobs)) as tallies:
            async for found in tallies:
                tally.merge(found)
                done = tally.tail.event_count
                on_progress(done, max(event_count, done))
        tally.found(await ledger.whole())
        on_progress(done, done)
        return _report(ledger, tally)


async def verify_run(url: str | Path, session_id: str, run_id: str) -> VerifyReport:
    """Verify one run: its stream, contents and rows, and nothing else; `RunNotFound` if there is none such."""
    async with opened(url) as ledger:
        return _report(ledger, await ledger.check_run(session_id, run_id))


def _report(ledger: Verifiable, tally: Tally) -> VerifyReport:
    return VerifyReport(
        ledger_id=ledger.ledger_id,
        event_count=tally.tail.event_count,
        stream_count=tally.stream_count,
        content_count=tally.content_count,
        row_count=tally.row_count,
        findings=tuple(sorted(tally.findings, key=lambda found: (found.stream_id or "~", found.seq or 0))),
        finding_count=tally.finding_count,
        runs_outdated=tally.outdated_count,
        tail=tally.tail,
    )
