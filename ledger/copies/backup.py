"""Backups of a ledger that goes on meanwhile, and ledgers made of them (SPEC D19).

A backup is one file, the ledger as it was in one moment: same positions, same links. It can be read like any other
ledger, but not written. What is restored from it says so in its own stream, so that its log is another one from there
on than that of the ledger it was taken of, should that still be about.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.clock import SystemWallClock, WallClock
from harness.events import LedgerRestored
from harness.ids import IdSource, RandomIds
from ledger.erasing.erasures import ErasureList
from ledger.errors import UnsupportedUrl
from ledger.ledger import Ledger
from ledger.store.copies import copy_file, count_events, made_beside, read_meta, set_meta
from ledger.store.identity import LIVE
from ledger.store.place import is_postgres, path_of
from ledger.store.probe import identify, require_current
from ledger.tokens.tokens import RESTORED
from ledger.verifying import VerifyReport, verify

Progress = Callable[[int, int], None]


def _nothing(_done: int, _of: int) -> None:
    """Nobody wants to hear how far it is."""


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What was put where."""

    ledger_id: str
    backup_id: str
    path: str
    size_bytes: int
    verified: VerifyReport | None
    """None unless that was asked for."""


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What was made of a backup."""

    ledger_id: str
    restore_id: str
    path: str
    erasures_repeated: int
    """Erasures of the given list that the backup did not know."""
    verified: VerifyReport


async def back_up(
    url: str | Path,
    target: Path,
    *,
    is_verified: bool = False,
    on_progress: Progress = _nothing,
    wall_clock: WallClock | None = None,
    ids: IdSource | None = None,
) -> BackupReport:
    """Copy a ledger in a file while others may be writing it; `LedgerDamaged` if the copy turns out to be wrong.

    Raises `LedgerUnreadable` where something is at `target` already.
    """
    if is_postgres(url):
        raise UnsupportedUrl("is a PostgreSQL database, which pg_dump backs up")
    source, target = path_of(url), path_of(target)
    identity = await asyncio.to_thread(require_current, source)
    backup_id = f"backup-{(ids or RandomIds()).writer_id()}"
    now_us = (wall_clock or SystemWallClock()).now_us()
    meta = {"standing": "backup", "backup_id": backup_id, "backup_us": str(now_us)}
    with made_beside(target) as copy:
        await asyncio.to_thread(copy_file, source, copy, meta, on_progress)
        verified = await _verified(copy, on_progress) if is_verified else None
        size_bytes = copy.stat().st_size
    return BackupReport(identity.ledger_id, backup_id, str(target), size_bytes, verified)


async def restore(
    backup: str | Path,
    target: Path,
    *,
    erasures: ErasureList | None = None,
    on_progress: Progress = _nothing,
    wall_clock: WallClock | None = None,
    ids: IdSource | None = None,
) -> RestoreReport:
    """Make a ledger of a backup, in which what was erased since is erased again; `LedgerDamaged` if it is wrong.

    Runs that were going on when the backup was taken are ended, as those of a dead process. Positions and links are
    those of the backup. Nothing at `target` is overwritten, and the backup stays as it is.
    """
    source, target = path_of(backup), path_of(target)
    identity = await asyncio.to_thread(identify, source)
    if erasures is not None:
        erasures.check(identity.ledger_id)
    meta = await asyncio.to_thread(read_meta, source)
    ids = ids or RandomIds()
    restore_id = f"restore-{ids.writer_id()}"
    repeated = 0
    with made_beside(target) as copy:
        await asyncio.to_thread(copy_file, source, copy, {"standing": LIVE}, on_progress)
        said = _of_backup(meta) | {"event_count": count_events(copy), "restore_id": restore_id}
        async with await Ledger.open(copy, wall_clock=wall_clock, ids=ids) as ledger:
            await ledger.record_system(LedgerRestored, **said)
            await ledger.tokens.revoke_all(RESTORED)
            if erasures is not None:
                repeated = await ledger.repeat_erasures(erasures)
            await ledger.finish_erasures()
        verified = await _verified(copy, on_progress)
        set_meta(copy, {})
    return RestoreReport(identity.ledger_id, restore_id, str(target), repeated, verified)


def _of_backup(meta: Mapping[str, str]) -> dict[str, Any]:
    """Which backup it was, if it was made as one."""
    if "backup_id" not in meta or "backup_us" not in meta:
        return {}
    return {"backup_id": meta["backup_id"], "backup_us": int(meta["backup_us"])}


async def _verified(copy: Path, on_progress: Progress) -> VerifyReport:
    report = await verify(copy, on_progress)
    report.require_right(copy.name)
    return report
