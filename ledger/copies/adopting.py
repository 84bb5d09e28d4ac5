"""A ledger that a dump was restored into another database, adopted: from there on it goes on by itself (SPEC D19).

A dump knows in which database the ledger was made, so elsewhere it can only be read. Whoever adopts it vouches that the
other one goes no further. Nobody else can open it before it is known what was erased since the dump, and that is right.
"""

from __future__ import annotations

from harness.clock import WallClock
from harness.events import LedgerRestored
from harness.ids import IdSource, RandomIds
from ledger.copies.backup import Progress, RestoreReport
from ledger.erasing.erasures import ErasureList
from ledger.errors import LedgerMissing, LedgerNotRestored, UnsupportedUrl
from ledger.ledger import Ledger
from ledger.reading.reader import LedgerReader
from ledger.reading.told import told
from ledger.store.identity import RESTORED
from ledger.store.place import is_postgres
from ledger.tokens.tokens import RESTORED as TOKENS_OF_BACKUP
from ledger.verifying import verify


async def adopt(
    url: str,
    *,
    erasures: ErasureList | None = None,
    on_progress: Progress = lambda _done, _of: None,
    wall_clock: WallClock | None = None,
    ids: IdSource | None = None,
) -> RestoreReport:
    """Let a restored ledger go on, in which what was erased since is erased again; `LedgerDamaged` if it is wrong.

    Runs that were going on when the dump was taken are ended, as those of a dead process. It takes the rights of the
    tables' owner, and may be repeated where it was cut short. `LedgerNotRestored` where there is nothing to adopt.
    """
    if not is_postgres(url):
        raise UnsupportedUrl("is a file, of whose backup `tachograph restore` makes a ledger")
    from ledger.store.postgres import adopted
    from ledger.store.postgres.place import place_at
    from ledger.store.postgres.probe import identify

    place = place_at(url)
    identity = await identify(place)
    if identity is None:
        raise LedgerMissing(place)
    if identity.standing != RESTORED:
        raise LedgerNotRestored(place)
    if erasures is not None:
        erasures.check(identity.ledger_id)
    ids = ids or RandomIds()
    repeated = 0
    restore_id, event_count = await adopted.prepare(place, f"restore-{ids.writer_id()}")
    async with await Ledger.open(url, wall_clock=wall_clock, ids=ids, adopts=True) as ledger:
        if not await _is_recorded(ledger.reader, restore_id):
            await ledger.record_system(LedgerRestored, restore_id=restore_id, event_count=event_count)
        await ledger.tokens.revoke_all(TOKENS_OF_BACKUP)
        if erasures is not None:
            repeated = await ledger.repeat_erasures(erasures)
        await ledger.finish_erasures()
    verified = await verify(url, on_progress)
    verified.require_right(place)
    await adopted.settle(place)
    return RestoreReport(identity.ledger_id, restore_id, str(place), repeated, verified)


async def _is_recorded(reader: LedgerReader, restore_id: str) -> bool:
    return restore_id in [event.fields["restore_id"] async for event in told(reader, ["ledger.restored"])]
