"""Events of streams from which nothing is folded: a session's, and the ledger's own (SPEC D2).

They are appended as a run's are: linked, once per event id, and only where they were expected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from harness.errors import InvalidInput
from harness.events import Event, SessionContextCleared, SessionEvent, SystemEvent
from harness.ids import SYSTEM_STREAM, check_name, session_stream
from harness.journal import Recorded
from ledger.append.deciding import Draft, StreamRow
from ledger.append.prepared import prepare_event
from ledger.bytes import genesis_link
from ledger.errors import AppendConflict, SessionNotFound

S = TypeVar("S", bound=SystemEvent)


@dataclass(frozen=True, slots=True)
class Statement:
    """An event of the ledger's own stream that may be recorded; `event_id` makes saying it twice saying it once."""

    model: type[SystemEvent]
    fields: dict[str, Any]
    event_id: str | None = None
    seq_expected: int | None = None

    def record(self, draft: Draft, now_us: int) -> Recorded:
        """Append it; `AppendConflict` if the stream is not where it was expected to be."""
        event = system_event(self.model, self.event_id or draft.setting.new_event_id(), now_us, **self.fields)
        return append(draft, event, seq_expected=self.seq_expected)


def system_event(model: type[S], event_id: str, now_us: int, /, **fields: Any) -> S:
    """An event of the ledger's own stream; `InvalidInput` for fields that it does not have or take."""
    try:
        return model(**{"event_id": event_id, "stream_id": SYSTEM_STREAM, "occurred_us": now_us, **fields})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or model.__name__
        raise InvalidInput(field, f"cannot be recorded: {first['msg']}") from None


def clear_context(session_id: str, actor: str | None) -> Callable[[Draft, int], Recorded]:
    """Says that later runs of the session are told nothing of earlier ones; `SessionNotFound` if there is none."""
    actor = None if actor is None else check_name("actor", actor)

    def record(draft: Draft, now_us: int) -> Recorded:
        stamp: dict[str, Any] = {"event_id": draft.setting.new_event_id(), "occurred_us": now_us}
        stream_id = session_stream(session_id)
        event = SessionContextCleared(session_id=session_id, stream_id=stream_id, actor=actor, **stamp)
        return append(draft, event)

    return record


def append(draft: Draft, event: SystemEvent | SessionEvent, *, seq_expected: int | None = None) -> Recorded:
    """Take the event, or find that it was taken before (SPEC D22)."""
    prepared = prepare_event(event)
    known = draft.find(event.stream_id, [prepared])
    if known is not None:
        return known
    row = draft.others.get(event.stream_id) or draft.log.stream(event.stream_id) or _begin(draft, event)
    if seq_expected is not None and seq_expected != row.head_seq:
        raise AppendConflict(event.stream_id, event.type, seq_expected=seq_expected, seq_found=row.head_seq)
    seq, link = draft.add_event(event.stream_id, row.session_id, None, prepared, row.head_seq, row.head_link)
    draft.others[event.stream_id] = row._replace(head_seq=seq, head_link=link)
    return Recorded(seq, seq, link)


def _begin(draft: Draft, event: Event) -> StreamRow:
    """The stream before its first event. A session begins by being opened, so only the ledger's own begins here."""
    if isinstance(event, SessionEvent):
        raise SessionNotFound(event.session_id)
    genesis = genesis_link(draft.setting.ledger_id, event.stream_id)
    return StreamRow(event.stream_id, "sys", None, None, 0, genesis, None, 0)
