"""One run looked at from all sides, and how far the newest checkpoint of its ledger vouches for it (SPEC E9).

What is looked at: each event's bytes, hash and link, the columns that repeat it, the contents it names, the rows it
adds up to; then whether the link of the run's last event under the newest checkpoint is in that checkpoint's tree,
by which every event before it is, too. What is not: the checkpoint's signature, since the public key that it is to be
checked with must come from elsewhere, and whatever belongs to no run.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.ids import run_stream
from ledger.audit.errors import DamagedTree
from ledger.audit.signing.receipts import count_under
from ledger.audit.signing.stored import StoredCheckpoint, StoredTree
from ledger.audit.tree.merkle import leaf_hash, verify_inclusion
from ledger.audit.tree.tiles import MissingLeaves
from ledger.reading.reader import LedgerReader
from ledger.verifying.findings import Finding


@dataclass(frozen=True, slots=True)
class RunCheck:
    """What was looked at of one run, when, and what is wrong with it."""

    session_id: str
    run_id: str
    checked_us: int
    event_count: int
    content_count: int
    row_count: int
    findings: tuple[Finding, ...]
    """The first wrong event of the run first; empty where all of it holds."""
    is_outdated: bool
    """Whether rows are as an earlier version of this program folded them, and otherwise right."""
    checkpoint: StoredCheckpoint | None
    """The newest one, whose signature was not checked; None where nothing was ever signed."""
    anchored_count: int
    """How many of the run's events, from the first on, are proven to be under it; 0 where anything is wrong."""

    @property
    def holds(self) -> bool:
        """Whether nothing was found; which says nothing of events that were cut off behind the checkpoint."""
        return not self.findings


async def check_run(reader: LedgerReader, session_id: str, run_id: str, now_us: int) -> RunCheck:
    """As `LedgerReader.check_run`."""
    async with reader.verifiable() as ledger:
        tally = await ledger.check_run(session_id, run_id)
    findings, event_count = tuple(tally.findings), tally.tail.event_count
    checkpoint, anchored_count = await reader.newest_checkpoint(), 0
    if checkpoint is not None and not findings:
        newest, stream_id = checkpoint, run_stream(run_id)
        anchored_count, wrong = await reader.on_tree(lambda tree: _anchored(tree, newest, stream_id, event_count))
        findings = () if wrong is None else (wrong,)
    return RunCheck(
        session_id=session_id,
        run_id=run_id,
        checked_us=now_us,
        event_count=event_count,
        content_count=tally.content_count,
        row_count=tally.row_count,
        findings=findings,
        is_outdated=bool(tally.outdated_count),
        checkpoint=checkpoint,
        anchored_count=anchored_count,
    )


def _anchored(
    tree: StoredTree, checkpoint: StoredCheckpoint, stream_id: str, event_count: int
) -> tuple[int, Finding | None]:
    """How many of the run's events are proven to be under the checkpoint; or what is wrong with that."""
    size = checkpoint.size
    if not checkpoint.is_as_its_note:
        return 0, Finding("checkpoint_differs", f"the checkpoint of {size:,} events is not what its note says")
    if tree.size() < size:
        return 0, Finding("checkpoint_differs", f"{size:,} events were signed, and there are {tree.size():,}")
    count = count_under(tree, stream_id, event_count, size)
    place = tree.place_of(stream_id, count) if count else None
    if place is None:
        return 0, None
    index, link = place
    try:
        path = tree.inclusion_path(index, size)
    except (MissingLeaves, DamagedTree):
        path = []
    if verify_inclusion(leaf_hash(link), index, size, path, checkpoint.root):
        return count, None
    # Others may be the ones that were changed: what proves an event is made of those beside it.
    detail = f"cannot be proven to be under the checkpoint of {size:,} events: the log is not the one that was signed"
    return 0, Finding("checkpoint_differs", detail, stream_id)
