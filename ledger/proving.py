"""What an open ledger signs and proves of itself (SPEC E9)."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from harness.clock import WallClock
from harness.errors import InvalidInput
from harness.events import KeyCreated
from harness.ids import check_id
from ledger.append.unfolded import Statement
from ledger.engine import Engine
from ledger.errors import EventIdReused
from ledger.reading.reader import LedgerReader

# Who gives no key needs nothing of what signing takes.
if TYPE_CHECKING:
    from ledger.audit.notes.checkpoint import SignedCheckpoint
    from ledger.audit.signing.checkpoints import Checkpoints
    from ledger.audit.signing.receipts import Receipt
    from ledger.audit.signing.signing import Progress, Signing

RECEIPT_TIMEOUT_S = 10.0
RECEIPT_TIMEOUT_MAX_S = 3_600.0


def _nothing(_done: int, _of: int) -> None:
    """Nobody wants to hear how far it is."""


class Proving:
    """Signing, as a part of `Ledger`."""

    _engine: Engine
    _clock: WallClock
    _checkpoints: Checkpoints | None = None

    @property
    def reader(self) -> LedgerReader:
        """Reads of the same ledger."""
        raise NotImplementedError

    async def checkpoint(self, *, on_progress: Progress = _nothing) -> SignedCheckpoint:
        """Sign what the log is now: every event that was acknowledged before.

        Raises `SigningOff` without a key; `InconsistentLog` or `DamagedTree` where the log is not what was signed
        before, and then nothing is; `LedgerUnavailable` or `AnchorError` if it could not be stored. The first one has
        the whole log read: `on_progress` hears, in another thread, of how many events how many are done.
        """
        if self._checkpoints is None:
            from ledger.audit.errors import SigningOff

            raise SigningOff
        return (await self._checkpoints.sign(on_progress)).signed

    async def receipt(self, session_id: str, run_id: str, *, timeout_s: float = RECEIPT_TIMEOUT_S) -> Receipt:
        """Proof, to be kept elsewhere, that the run is in the log as it is now: once a checkpoint covers it.

        Without a key it waits for one that another process signs. Raises `NoCheckpoint` where there is none in
        time, `RunNotFound` for an unknown run and another session's alike, and what `checkpoint` raises.
        """
        check_id("session_id", session_id)
        check_id("run_id", run_id)
        if isinstance(timeout_s, bool) or not 0 < timeout_s <= RECEIPT_TIMEOUT_MAX_S:
            raise InvalidInput("timeout_s", f"must be above 0 and at most {RECEIPT_TIMEOUT_MAX_S:g} seconds")
        from ledger.audit.signing.receipts import receipt_of

        return await receipt_of(self.reader, self._checkpoints, session_id, run_id, timeout_s)

    async def _begin_signing(self, url: str | Path, signing: Signing) -> None:
        """Sign from now on; `KeyFileError`, `RevokedKey`, `ReplacedKey` or `InvalidKey` if the key cannot be used."""
        from ledger.audit.signing.checkpoints import Checkpoints
        from ledger.audit.signing.keys import KeyHistory, facts_of, require_name

        key = await asyncio.to_thread(signing.load_key)
        require_name(signing.origin or key.name, await self.reader.ledger_id())
        history = KeyHistory()
        await history.read_on(self.reader)
        history.require_usable(key.verifier.key_id)
        if key.verifier.key_id not in history.keys:
            # Of those who begin with the same key at once, one says so.
            said = Statement(KeyCreated, dict(facts_of(key.verifier)), f"key-{key.verifier.key_id}:1")
            now_us = self._clock.now_us()
            with contextlib.suppress(EventIdReused):
                await asyncio.wrap_future(self._engine.writer.run(lambda draft: said.record(draft, now_us)))
        self._checkpoints = Checkpoints(url, self._engine.tree, key, history, signing, self._clock)
        self._engine.writer.watch_ends(self._checkpoints.run_ended)
        await self._checkpoints.start()
