"""Who has looked, on record before anything is shown: `access.recorded` in the ledger's own stream.

Reading the same again within `ACCESS_COALESCED_S` is one access, so that a page that is open on a running run does not
fill the ledger; and so are refusals of one kind, of which all together `REFUSALS_MAX` are recorded in that time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final, Protocol

from harness.clock import MonotonicClock
from harness.events import AccessRecorded, SystemEvent

log = logging.getLogger(__name__)

ACCESS_COALESCED_S: Final = 60
REFUSALS_MAX: Final = 60
"""Refusals recorded in any such time: a flood of them is one line in the log, and no more in the ledger."""
REMEMBERED_MAX: Final = 10_000
"""Accesses remembered; of more, some are recorded again."""


class Recorder(Protocol):
    """The part of `ledger.Ledger` that is used here."""

    async def record_system(self, model: type[SystemEvent], **fields: Any) -> object:
        """Record it durably in the ledger's own stream."""


@dataclass(frozen=True, slots=True)
class Access:
    """What is told of one."""

    action: str
    token_id: str | None = None
    actor: str | None = None
    of_session_id: str | None = None
    of_run_id: str | None = None
    reason: str | None = None
    """Why it was refused; None if it was not."""


class AccessRecords:
    """The accesses of one server."""

    def __init__(self, recorder: Recorder, clock: MonotonicClock) -> None:
        self._recorder = recorder
        self._clock = clock
        self._known: OrderedDict[Access, tuple[int, asyncio.Task[object]]] = OrderedDict()
        self._refusals: list[int] = []

    def is_recent(self, access: Access) -> bool:
        """Whether it would be no access of its own, since the same was recorded a moment ago."""
        since_ns, recording = self._known.get(access, (0, None))
        is_over = self._clock.now_ns() - since_ns >= ACCESS_COALESCED_S * 1_000_000_000
        return not (recording is None or is_over or _has_failed(recording))

    async def note(self, access: Access, session_id: str | None = None) -> None:
        """Returns once it is durable that somebody looks; raises what the ledger raises, and then he must not."""
        if not self.is_recent(access):
            recording = asyncio.ensure_future(self._record(access, session_id or access.of_session_id))
            self._known[access] = (self._clock.now_ns(), recording)
            self._known.move_to_end(access)
            if len(self._known) > REMEMBERED_MAX:
                self._known.popitem(last=False)
        # Whoever asked may leave meanwhile: others may wait for the same.
        await asyncio.shield(self._known[access][1])

    async def note_refusal(self, access: Access, session_id: str | None = None) -> None:
        """Record that somebody was refused, within the bound; he is refused whether or not that works.

        Of the sessions that he tried, the first one is told.
        """
        now_ns = self._clock.now_ns()
        known_ns, known = self._known.get(access, (0, None))
        window_ns = ACCESS_COALESCED_S * 1_000_000_000
        self._refusals = [at_ns for at_ns in self._refusals if now_ns - at_ns < window_ns]
        is_new = known is None or now_ns - known_ns >= window_ns
        if is_new and len(self._refusals) >= REFUSALS_MAX:
            log.warning("a refusal of %s is not recorded: there were %d within a minute", access.action, REFUSALS_MAX)
            return
        if is_new:
            self._refusals.append(now_ns)
        try:
            await self.note(access, session_id)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the refusal stands
            log.warning("a refusal of %s was not recorded: %s", access.action, type(error).__name__)

    async def _record(self, access: Access, session_id: str | None) -> object:
        return await self._recorder.record_system(
            AccessRecorded,
            action=access.action,
            allowed=access.reason is None,
            reason=access.reason,
            token_id=access.token_id,
            actor=access.actor,
            of_session_id=session_id,
            of_run_id=access.of_run_id,
        )


def _has_failed(recording: asyncio.Task[object]) -> bool:
    return recording.done() and (recording.cancelled() or recording.exception() is not None)
