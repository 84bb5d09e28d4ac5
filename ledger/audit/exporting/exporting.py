"""Makes bundles of what a ledger holds in one moment: read page by page, and checked before they appear (SPEC E9).

On PostgreSQL the caller's loop has nothing else to do while one is made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from harness.clock import SystemWallClock, WallClock
from harness.errors import InvalidInput
from harness.events.base import MAX_SAFE_INTEGER
from harness.ids import check_id
from ledger.audit.bundle import limits
from ledger.audit.bundle import manifest as names
from ledger.audit.bundle.making import BundleWriter
from ledger.audit.bundle.manifest import Manifest, PeriodManifest, RunManifest, TreeClaim
from ledger.audit.bundle.report import BundleReport
from ledger.audit.bundle.verifying import Progress, verify_bundle
from ledger.audit.errors import NotEnclosed
from ledger.audit.exporting.period_record import PeriodRecord
from ledger.audit.exporting.run_record import RunRecord
from ledger.audit.exporting.signed_log import SignedLog
from ledger.audit.notes.checkpoint import SignedCheckpoint
from ledger.audit.notes.notes import VerifierKey
from ledger.compression import DamagedContent
from ledger.errors import LedgerDamaged, LedgerUnreadable
from ledger.following.leaves import LeafQueries
from ledger.reading import moment as reading
from ledger.reading.reader import LedgerReader
from ledger.store.copies import made_beside

Write = Callable[[BundleWriter, sa.Connection, LeafQueries], dict[str, Any]]
"""Writes all of a bundle but its manifest, and returns what that says of it in particular."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vouched:
    """Who vouches for what is exported."""

    keys: Sequence[VerifierKey] = ()
    """Public keys, which the bundle brings along. Without any it has no checkpoint, and nothing vouches for it."""
    origin: str | None = None
    """The log that checkpoints are of, where the keys have signed several; else that of their newest."""
    kept: SignedCheckpoint | None = None
    """A checkpoint that whoever is given the bundle has: it will show that the log has only grown since."""


NOBODY = Vouched()


@dataclass(frozen=True, slots=True)
class Exported:
    """A bundle that was made."""

    path: Path
    size_bytes: int
    verified: BundleReport
    """What checking it came to, before it appeared."""


async def export_run(
    url: str | Path,
    target: Path,
    session_id: str,
    run_id: str,
    *,
    with_content: bool = True,
    vouched: Vouched = NOBODY,
    wall_clock: WallClock | None = None,
    on_progress: Progress = lambda _done, _of: None,
) -> Exported:
    """Make a file of one run as it is now. Without contents it has neither their text nor their salts.

    Of the checkpoints there are it takes the first that covers the run, or else the last: what came later is said not
    to be covered. Raises `RunNotFound`, `BundleTooLarge`, `LedgerDamaged` where the ledger holds something that would
    not pass, `LedgerUnreadable` where the target exists or cannot be written; then nothing is left of it.
    """
    check_id("session_id", session_id)
    check_id("run_id", run_id)

    def write(bundle: BundleWriter, connection: sa.Connection, queries: LeafQueries) -> dict[str, Any]:
        run = RunRecord(connection, queries, session_id, run_id)
        bundle.add_events(run.events())
        bundle.add_rows(run.rows())
        bundle.add_contents(run.contents(is_withheld=not with_content), run.stored() if with_content else ())
        tree = _tree_of_run(bundle, SignedLog(connection, queries, vouched.keys, vouched.origin), vouched)
        content = "included" if with_content else "withheld"
        return {"kind": "run", "session_id": session_id, "run_id": run_id, "content": content, "tree": tree}

    return await _export(url, target, write, RunManifest, limits.MAX_RUN_EVENTS, wall_clock, on_progress)


async def export_period(
    url: str | Path,
    target: Path,
    from_us: int,
    to_us: int,
    *,
    vouched: Vouched,
    wall_clock: WallClock | None = None,
    on_progress: Progress = lambda _done, _of: None,
) -> Exported:
    """Make a file of all events between two checkpoints, which enclose those recorded from one time to another.

    The log's beginning stands in for a checkpoint before the period, or `vouched.kept` does, which must be as early.
    Raises `NotEnclosed` where there is no checkpoint after the period, and otherwise as `export_run`.
    """
    if not 0 <= from_us < to_us <= MAX_SAFE_INTEGER:
        raise InvalidInput("period", "must end after it begins, and at a time that there is")

    def write(bundle: BundleWriter, connection: sa.Connection, queries: LeafQueries) -> dict[str, Any]:
        period = PeriodRecord(connection, queries)
        begin, end = period.bounds(from_us, to_us)
        log = SignedLog(connection, queries, vouched.keys, vouched.origin)
        newer = log.covering(end)
        if newer is None:
            raise NotEnclosed(f"there is none of {end:,} events or more by any of the keys; sign one")
        older = vouched.kept
        if older is None:
            stored = log.at_most(begin)
            older = None if stored is None or not stored.size else stored.signed
        older_size = 0 if older is None else older.open(vouched.keys, origin=newer.origin).size
        if older_size > begin:
            raise NotEnclosed(f"the one that was kept has {older_size:,} events, and the period begins at {begin:,}")
        bundle.add_events(period.events(older_size, newer.size))
        bundle.add_lines(names.HEADS, period.heads())
        tree = bundle.add_tree(log.signed_tree(newer, older))
        return {"kind": "period", "from_us": from_us, "to_us": to_us, "tree": tree}

    return await _export(url, target, write, PeriodManifest, limits.MAX_PERIOD_EVENTS, wall_clock, on_progress)


def _tree_of_run(bundle: BundleWriter, log: SignedLog, vouched: Vouched) -> TreeClaim | None:
    """What proves the run to be in the log; None where no checkpoint covers any of its events."""
    if not bundle.indexes:
        return None
    kept_size = 0 if vouched.kept is None else vouched.kept.open(vouched.keys).size
    checkpoint = log.covering(max(bundle.indexes[-1] + 1, kept_size)) or log.at_most(MAX_SAFE_INTEGER)
    if vouched.kept is not None:
        if checkpoint is None or checkpoint.size < kept_size:
            raise NotEnclosed(f"the one that was kept has {kept_size:,} events, and there is none since")
        vouched.kept.open(vouched.keys, origin=checkpoint.origin)
    if checkpoint is None or checkpoint.size <= bundle.indexes[0]:
        return None
    return bundle.add_tree(log.signed_tree(checkpoint, vouched.kept if kept_size else None))


async def _export(
    url: str | Path,
    target: Path,
    write: Write,
    kind: type[Manifest],
    events_max: int,
    wall_clock: WallClock | None,
    on_progress: Progress,
) -> Exported:
    clock = wall_clock or SystemWallClock()
    async with await LedgerReader.open(url) as reader:
        with made_beside(target) as made:

            def make(connection: sa.Connection, queries: LeafQueries) -> None:
                try:
                    with made.open("xb+") as file:
                        bundle = BundleWriter(file, events_max)
                        said = write(bundle, connection, queries)
                        said |= _common(bundle, reading.ledger_id(connection), max(0, clock.now_us()))
                        bundle.end(kind.model_validate(said))
                except OSError as error:
                    raise LedgerUnreadable(target, f"cannot be written ({error.strerror})") from error
                except DamagedContent as error:
                    raise LedgerDamaged(reader.place, f"a content is damaged ({error})", 1) from error

            await reader.in_one_moment(make)
            verified = await asyncio.to_thread(verify_bundle, made, on_progress=on_progress)
            if verified.finding is not None:
                raise LedgerDamaged(reader.place, str(verified.finding), 1)
            size_bytes = made.stat().st_size
    return Exported(target, size_bytes, verified)


def _common(bundle: BundleWriter, ledger_id: str, made_us: int) -> dict[str, Any]:
    try:
        made_by = f"tachograph {version('tachograph')}"
    except PackageNotFoundError:
        made_by = "tachograph"
    facts = {"format": names.FORMAT, "version": names.VERSION, "ledger_id": ledger_id}
    made = {"made_by": made_by, "made_us": made_us}
    return facts | made | {"event_count": bundle.event_count, "members": bundle.members}
