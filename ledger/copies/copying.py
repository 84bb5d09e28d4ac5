"""A ledger copied as it is into another file or database: the way to grow, and back, all of it or nothing.

Order, links, contents and rows are the same there, which is read back and compared before anything is kept. The ledger
must be open nowhere, and is marked as moved, so that only the copy goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ledger.errors import LedgerInUse, Place, UnsupportedUrl
from ledger.migrate import OPEN_TIMEOUT_S, lock_of
from ledger.store.copies import copy_file, made_beside, mark, other_tables
from ledger.store.identity import require_live
from ledger.store.owners import Owners
from ledger.store.place import is_postgres, path_of
from ledger.store.probe import require_current
from ledger.verifying import VerifyReport, verify

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What was copied where."""

    ledger_id: str
    source: str
    target: str
    is_moved: bool
    """Whether the source is marked, so that nobody writes it any more."""
    verified: VerifyReport
    """Of the copy."""
    left_behind: tuple[str, ...] = ()
    """Tables of others, such as those that followers fill. Only a file that is copied to a file takes them along."""


async def copy(
    source: str | Path,
    target: str | Path,
    *,
    keeps_source: bool = False,
    on_progress: Progress = lambda _done, _of: None,
) -> CopyReport:
    """Copy a ledger to an address where there is none yet; one of the two is a file.

    Raises `LedgerInUse` while a process has it open, and `LedgerUnreadable` where the target holds something. With
    `keeps_source` both could go on under one `ledger_id`, and whoever asks for it sees to it that they do not.
    """
    if is_postgres(source):
        if is_postgres(target):
            raise UnsupportedUrl("is a PostgreSQL database as the source is: pg_dump copies one to the other")
        return await _copy_out(str(source), path_of(target), keeps_source, on_progress)
    path = path_of(source)
    identity = await asyncio.to_thread(require_current, path)
    require_live(path, identity)
    with _at_rest(path):
        if is_postgres(target):
            from ledger.store.postgres.copying import copy_to_postgres

            place: Place = await copy_to_postgres(path, identity.ledger_id, str(target), on_progress)
            verified = await verify(target, on_progress)
            verified.require_right(place)
            left_behind = await asyncio.to_thread(other_tables, path)
        else:
            left_behind = ()
            place = path_of(target)
            with made_beside(place) as made:
                await asyncio.to_thread(copy_file, path, made, {}, on_progress)
                verified = await verify(made, on_progress)
                verified.require_right(place)
        if not keeps_source:
            await asyncio.to_thread(mark, path, {"standing": "moved", "moved_to": str(place)})
    return CopyReport(identity.ledger_id, str(path), str(place), not keeps_source, verified, left_behind)


async def _copy_out(source: str, target: Path, keeps_source: bool, on_progress: Progress) -> CopyReport:
    """Copy a ledger in a database to a file."""
    from ledger.store.postgres import copying_out
    from ledger.store.postgres.place import place_at
    from ledger.store.postgres.probe import require_current

    place = place_at(source)
    identity = await require_current(place)
    require_live(place, identity)
    async with copying_out.at_rest(place) as connection:
        with made_beside(target) as made:
            await copying_out.copy_to_file(connection, identity.ledger_id, made, on_progress)
            verified = await verify(made, on_progress)
            verified.require_right(target)
        left_behind = await copying_out.other_tables(connection)
        if not keeps_source:
            await copying_out.mark_moved(connection, str(target))
    return CopyReport(identity.ledger_id, str(place), str(target), not keeps_source, verified, left_behind)


@contextlib.contextmanager
def _at_rest(path: Path) -> Iterator[None]:
    """The ledger while nobody has it open, or can open it."""
    lock = lock_of(path)
    try:
        with lock.held(OPEN_TIMEOUT_S):
            if Owners(Path(f"{path}.owners")).living():
                raise LedgerInUse(path)
            yield
    finally:
        lock.close()
