"""Bundles of runs to download: made in a folder that nobody else sees, checked, and sent in pieces."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from viewer.audit.source import LedgerAddress, NoAddress, TooBusy

BUNDLES_AT_ONCE = 1
BUNDLE_WAIT_S = 20.0
"""For how long a further one waits for its turn."""
PIECE_BYTES = 256 * 1024
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Bundle(NamedTuple):
    """A bundle that was made; its file has no name any more and is gone once it is closed."""

    file: BinaryIO
    size_bytes: int

    async def pieces(self) -> AsyncIterator[bytes]:
        """Its bytes; whoever stops reading loses the file."""
        with self.file:
            while piece := await asyncio.to_thread(self.file.read, PIECE_BYTES):
                yield piece


class Bundles:
    """Makes bundles, a few at once."""

    def __init__(self, address: LedgerAddress | None) -> None:
        self._address = address
        self._room = asyncio.Semaphore(BUNDLES_AT_ONCE)

    @property
    def is_possible(self) -> bool:
        """Whether the server knows where the ledger is."""
        return self._address is not None

    async def make(self, session_id: str, run_id: str, *, with_content: bool) -> Bundle:
        """The run as it is now. `NoAddress`, `TooBusy`, and as `ledger.audit.exporting.exporting.export_run`."""
        address = self._address
        if address is None:
            raise NoAddress
        try:
            async with asyncio.timeout(BUNDLE_WAIT_S):
                await self._room.acquire()
        except TimeoutError:
            raise TooBusy("too many bundles are made") from None
        try:
            # In a loop of its own: on PostgreSQL making one takes all of a loop's time.
            return await asyncio.to_thread(lambda: asyncio.run(_made(address, session_id, run_id, with_content)))
        finally:
            self._room.release()


async def _made(address: LedgerAddress, session_id: str, run_id: str, with_content: bool) -> Bundle:
    # What makes and checks bundles is loaded once somebody wants one.
    from ledger.audit.exporting.exporting import NOBODY, Vouched, export_run

    keys = address.keys()
    folder = Path(tempfile.mkdtemp(prefix="tachograph-bundle-"))
    try:
        made = await export_run(
            address.url,
            folder / "run.bundle",
            session_id,
            run_id,
            with_content=with_content,
            vouched=Vouched(keys=keys) if keys else NOBODY,
        )
        return Bundle(made.path.open("rb"), made.size_bytes)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def file_name(run_id: str, ending: str) -> str:
    """A name that any file system takes and no header is broken by."""
    return f"{_UNSAFE.sub('_', run_id).strip('.')[:120] or 'run'}.{ending}"
