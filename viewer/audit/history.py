"""What was decided about the ledger itself, folded from its own stream, which is read on from where it was left.

Decisions are few; accesses may be many. So of each kind the newest are kept in memory, and all are counted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from ledger.records import RecordedEvent
from viewer.audit.source import AuditReader

PAGE_EVENTS = 1_000
KEPT_MAX = 1_000
"""Of each kind; what is older is in the ledger, and in `GET /api/audit/events`."""

Kind = Literal["keys", "erasures", "retention", "restores", "tokens", "accesses"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_KIND_OF: Mapping[str, Kind] = {
    "key.created": "keys",
    "key.rotated": "keys",
    "key.revoked": "keys",
    "erasure.requested": "erasures",
    "erasure.decided": "erasures",
    "retention.decided": "retention",
    "ledger.restored": "restores",
    "token.created": "tokens",
    "token.revoked": "tokens",
    "access.recorded": "accesses",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that was decided or done."""

    seq: int
    at_us: int
    type: str
    actor: str | None
    facts: Mapping[str, Any]
    finished: Mapping[str, Any] | None = None
    """Of an erasure or a retention: what was erased in the end."""
    finished_us: int | None = None


@dataclass(slots=True)
class Known:
    """What is kept of a kind."""

    count: int = 0
    newest: deque[Entry] = field(default_factory=lambda: deque(maxlen=KEPT_MAX))

    def add(self, entry: Entry) -> None:
        self.count += 1
        self.newest.append(entry)


class SystemHistory:
    """The ledger's own stream as far as it was read."""

    def __init__(self, reader: AuditReader) -> None:
        self._reader = reader
        self._last: RecordedEvent | None = None
        self._known = _nothing_known()
        self._reading = asyncio.Lock()

    async def read_on(self) -> Mapping[Kind, Known]:
        """Everything until now."""
        async with self._reading:
            if self._last is not None and not await self._goes_on_after(self._last):
                self._last, self._known = None, _nothing_known()
            while page := await self._reader.system_events(self._last.seq if self._last else 0, PAGE_EVENTS):
                for event in page:
                    self._add(event)
                self._last = page[-1]
                if len(page) < PAGE_EVENTS:
                    break
        return self._known

    async def _goes_on_after(self, last: RecordedEvent) -> bool:
        """Whether what was read last is still there: a database may be put into another's place while it is served."""
        return [event.link for event in await self._reader.system_events(last.seq - 1, 1)] == [last.link]

    def _add(self, event: RecordedEvent) -> None:
        if event.type == "erasure.finished":
            self._finish(event)
            return
        kind = _KIND_OF.get(event.type)
        if kind is not None:
            facts = event.fields
            self._known[kind].add(Entry(event.seq, event.occurred_us, event.type, facts.get("actor"), facts))

    def _finish(self, event: RecordedEvent) -> None:
        for kind in ("erasures", "retention"):
            newest = self._known[kind].newest
            for at in range(len(newest) - 1, -1, -1):
                if newest[at].facts.get("erasure_id") == event.fields.get("erasure_id"):
                    newest[at] = replace(newest[at], finished=event.fields, finished_us=event.occurred_us)
                    return


def _nothing_known() -> dict[Kind, Known]:
    return {kind: Known() for kind in KINDS}
