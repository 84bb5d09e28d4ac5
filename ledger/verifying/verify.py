"""Verifies a ledger stream by stream, then what belongs to none, while others may go on appending.

Each stream is looked at as of one moment, so what is appended meanwhile is either part of it or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

from harness.ids import SYSTEM_STREAM
from ledger.audit.notes.checkpoint import Checkpoint
from ledger.reading.reader import LedgerReader
from ledger.verifying.anchored import Anchored, check_tree
from ledger.verifying.erasures import check_erasures
from ledger.verifying.findings import Tail, Tally, VerifyReport
from ledger.verifying.processes import check_all
from ledger.verifying.sharing import Verifiable, opened

Progress = Callable[[int, int], None]
"""Hears how many events were looked at, and of how many."""


def _nothing(_done: int, _of: int) -> None:
    """Nobody wants to hear how far it is."""


async def verify(
    url: str | Path, on_progress: Progress = _nothing, *, jobs: int = 1, trusted: Sequence[Checkpoint] = ()
) -> VerifyReport:
    """Verify the ledger at that address, which is opened for reading only; a `LedgerFileError` if there is none.

    The `trusted` checkpoints were kept outside, their signatures are checked, and the log must begin with all of them.
    With more than one of `jobs`, other processes help with a large one. They are spawned, so a program that asks for
    them must be one that can be imported (`if __name__ == "__main__"`).
    """
    async with opened(url) as ledger:
        tally, done = Tally(), 0
        shares, anchored = await ledger.shares(), Anchored()
        system_seq = await ledger.head_seq(SYSTEM_STREAM)
        event_count = sum(share.event_count for share in shares)
        async with aclosing(check_all(url, ledger, shares, jobs)) as tallies:
            async for found in tallies:
                tally.merge(found)
                done = tally.tail.event_count
                on_progress(done, max(event_count, done))
        are_streams_right = not tally.finding_count
        tally.found(await ledger.whole())
        if not any(finding.problem == "file_damaged" for finding in tally.findings):
            async with await LedgerReader.open(url) as reader:
                if are_streams_right:
                    tally.found(await check_erasures(reader, tally.taken, system_seq))
                anchored = await check_tree(reader, trusted)
        tally.found(anchored.findings)
        on_progress(done, done)
        return _anchored(_report(ledger, tally), anchored)


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


def _anchored(report: VerifyReport, anchored: Anchored) -> VerifyReport:
    """With the tail that is left: the events that no trusted checkpoint is of."""
    count = max(0, report.event_count - anchored.anchored_count)
    last_us = report.tail.last_us if count else None
    since_us = anchored.since_us if anchored.anchored_count else report.tail.first_us
    return replace(report, tail=Tail(count, since_us, last_us), anchored_count=anchored.anchored_count)
