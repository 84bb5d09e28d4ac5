"""When checkpoints are signed: every so often, at the ends of runs, when asked, and at last when the ledger is closed.

All of it happens in a thread with a loop and connections of its own: nobody who appends or reads waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from dataclasses import dataclass, field
from pathlib import Path

from harness.clock import WallClock
from harness.errors import HarnessError, LedgerUnavailable
from ledger.audit.errors import ReplacedKey, RevokedKey
from ledger.audit.notes.notes import SigningKey
from ledger.audit.signing.anchor import Anchor
from ledger.audit.signing.keys import KeyHistory
from ledger.audit.signing.signing import Progress, Signer, Signing
from ledger.audit.signing.store import TreeStore
from ledger.audit.signing.stored import StoredCheckpoint
from ledger.errors import LedgerError
from ledger.loop_thread import LoopThread, is_process_ending
from ledger.measures import SigningMeasures
from ledger.reading.reader import LedgerReader

log = logging.getLogger(__name__)

REST_S = 1.0
"""Between two that nobody asked for: many runs that end at once have one checkpoint."""
PLACED_POLLS = 100
"""How often a checkpoint looks, before it goes on, whether there are events without a place in the public order,"""
PLACED_POLL_S = 0.02
"""and how long it waits in between."""
CLOSE_TIMEOUT_S = 30.0


@dataclass(slots=True)
class _Counted:
    last: StoredCheckpoint | None = None
    signed_count: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    problem: str | None = None
    """Why nothing was signed the last time."""


class Checkpoints:
    """The signing of an open ledger."""

    def __init__(
        self,
        url: str | Path,
        store: TreeStore,
        key: SigningKey,
        history: KeyHistory,
        signing: Signing,
        clock: WallClock,
    ) -> None:
        """`history` is read on from here, and by nobody else any more."""
        self._url = url
        self._history = history
        self._store = store
        self._key = key
        self._signing = signing
        self._clock = clock
        self._counted = _Counted()
        self._process_id = os.getpid()
        self._thread = LoopThread("ledger-signer")
        self._asked = asyncio.Event()
        self._reader: LedgerReader | None = None
        self._signer: Signer | None = None
        """Another one for each key and each origin."""
        self._schedule: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin with a first one, which makes sure of all that was signed before."""
        await self._thread.done(self._start())

    @property
    def origin(self) -> str:
        """The log that checkpoints are of."""
        return self._origins()[-1]

    def run_ended(self) -> None:
        """Let there be a checkpoint soon; from any thread, and costs nothing."""
        with contextlib.suppress(RuntimeError):  # The loop may have been closed.
            self._thread.loop.call_soon_threadsafe(self._asked.set)

    async def sign(self, on_progress: Progress = lambda _done, _of: None) -> StoredCheckpoint:
        """One of all events that were acknowledged before; raises as `Signer.sign`."""
        if os.getpid() != self._process_id:
            raise LedgerUnavailable("a forked process cannot use its parent's ledger")
        # Whoever waits may be cancelled; what is under way goes on to its end.
        return await self._thread.done(self._sign(on_progress))

    def measures(self) -> SigningMeasures:
        """What was counted."""
        counted = self._counted
        size, signed_us = (0, None) if counted.last is None else (counted.last.size, counted.last.created_us)
        return SigningMeasures(size, signed_us, counted.signed_count, dict(counted.refused))

    async def close(self) -> None:
        """Sign a last one, if that can be done, and let go of everything."""
        if os.getpid() != self._process_id:
            return  # The thread is the parent's.
        await self._thread.done(self._stop())
        await asyncio.to_thread(self._thread.stop)

    async def _start(self) -> None:
        self._reader = await LedgerReader.open(self._url)
        self._asked.set()
        self._schedule = asyncio.create_task(self._keep_signing())

    async def _stop(self) -> None:
        if self._schedule is not None:
            self._schedule.cancel()
            await asyncio.wait([self._schedule])
        if self._reader is not None:
            try:
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await self._try()
            except TimeoutError:
                log.warning("the ledger was closed without a last checkpoint: the log is too long to be read by now")
            await self._reader.close()

    async def _keep_signing(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._signing.every_s):
                    await self._asked.wait()
            await self._try()
            await asyncio.sleep(REST_S)

    async def _try(self) -> None:
        """Sign what has come; a failure is counted, said once, and tried again another time."""
        try:
            await self._sign(lambda _done, _of: None)
            self._counted.problem = None
        except (LedgerError, HarnessError) as error:
            if str(error) != self._counted.problem:
                log.error("no checkpoint: %s", error)
            self._counted.problem = str(error)
        except Exception:
            # Nobody reads any more, then: whoever opens the ledger next signs it.
            if not is_process_ending():
                log.exception("no checkpoint could be signed")

    async def _sign(self, on_progress: Progress) -> StoredCheckpoint:
        assert self._reader is not None
        # What was asked for before is answered by this one.
        self._asked.clear()
        try:
            await _all_placed(self._reader)
            signer = await self._signer_now(self._reader)
            checkpoint = await signer.sign(self._require_usable, on_progress)
        except Exception as error:
            code = str(getattr(error, "code", "internal_error"))
            self._counted.refused[code] = self._counted.refused.get(code, 0) + 1
            raise
        if checkpoint != self._counted.last:
            self._counted.last = checkpoint
            self._counted.signed_count += 1
        return checkpoint

    async def _signer_now(self, reader: LedgerReader) -> Signer:
        """Who may sign by what the ledger says now; `RevokedKey` or `ReplacedKey` where the key may not."""
        await self._history.read_on(reader)
        try:
            self._history.require_usable(self._key.verifier.key_id)
        except (ReplacedKey, RevokedKey):
            # The file has the one that came into use since, unless the rotation is under way.
            key = await asyncio.to_thread(self._signing.load_key)
            if key.verifier.key_id not in self._history.keys:
                raise
            self._history.require_usable(key.verifier.key_id)
            self._key = key
        origins = self._origins()
        if self._signer is None or (self._signer.key, self._signer.origin) != (self._key, origins[-1]):
            anchor = None if self._signing.anchor is None else Anchor(Path(self._signing.anchor))
            self._signer = Signer(reader, self._store, self._key, origins, anchor, self._clock)
        return self._signer

    async def _require_usable(self) -> None:
        # Once more: what is signed may hold what takes the key away, if that came since the signer was chosen.
        assert self._reader is not None
        await self._history.read_on(self._reader)
        self._history.require_usable(self._key.verifier.key_id)

    def _origins(self) -> list[str]:
        return self._history.origins_of(self._signing.origin or self._key.name)


async def _all_placed(reader: LedgerReader) -> None:
    """Wait, for a moment, until what is committed has its place in the public order."""
    for _ in range(PLACED_POLLS):
        if not await reader.unsequenced():
            return
        await asyncio.sleep(PLACED_POLL_S)
