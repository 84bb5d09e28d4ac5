"""All events of a period: every place of the log filled, every stream linked, and every run that they tell of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from harness.events.base import MAX_SAFE_INTEGER
from harness.ids import CODE_PATTERN, ID_PATTERN, SYSTEM_STREAM, run_stream, session_stream
from ledger.audit.bundle import limits
from ledger.audit.bundle.errors import BundleWrong
from ledger.audit.bundle.event_lines import STREAM_ID, EventLine, fields_in, parse_event_line, parse_head_line
from ledger.audit.bundle.manifest import EVENTS, HEADS, PeriodManifest
from ledger.audit.bundle.reading import Archive
from ledger.audit.bundle.report import PeriodRun
from ledger.audit.bundle.tree_check import TreeCheck
from ledger.bytes import genesis_link

ID, CODE = re.compile(ID_PATTERN), re.compile(CODE_PATTERN)
"""What is told to people of a run: it must not be able to move their cursor."""


@dataclass(slots=True)
class _Stream:
    seq: int
    link: bytes
    session_id: str | None = None
    run_id: str | None = None
    begun_us: int | None = None
    ended_us: int | None = None
    outcome: str | None = None
    reason: str | None = None
    event_count: int = 0


def check_period_events(
    archive: Archive, manifest: PeriodManifest, tree: TreeCheck
) -> tuple[tuple[PeriodRun, ...], tuple[int, int] | None]:
    """Every run that has an event in the period, and when the first and the last of all events were recorded.

    `BundleWrong` for the first event that is not as it should be.
    """
    first_us, last_us = MAX_SAFE_INTEGER, 0
    heads, streams = _heads_of(archive, manifest), dict[str, _Stream]()
    first = manifest.tree.earlier_size
    number = 0
    for line in archive.lines(EVENTS, limits.MAX_EVENT_LINE_BYTES, manifest.digest_of(EVENTS)):
        number += 1
        event = parse_event_line(line, number)
        if event.leaf_index != first + number - 1:
            raise BundleWrong("sequence_gap", f"event {number}", f"place {first + number - 1} of the log is missing")
        _add(heads, streams, event, number, manifest.ledger_id)
        tree.add(event.leaf_index, event.link)
        first_us, last_us = min(first_us, event.recorded_us), max(last_us, event.recorded_us)
    if not number == manifest.event_count == manifest.tree.covered_count == manifest.tree.size - first:
        raise BundleWrong("count_differs", EVENTS, f"there are {number} events, and not one for each place of the log")
    tree.end()
    if heads:
        raise BundleWrong("count_differs", HEADS, f"it has {min(heads)}, of which there is no event")
    runs = tuple(
        PeriodRun(
            one.session_id or "", one.run_id, one.begun_us, one.ended_us, one.outcome, one.reason, one.event_count
        )
        for one in streams.values()
        if one.run_id is not None
    )
    return runs, (first_us, last_us) if number else None


def _heads_of(archive: Archive, manifest: PeriodManifest) -> dict[str, tuple[int, bytes]]:
    heads: dict[str, tuple[int, bytes]] = {}
    for line in archive.lines(HEADS, limits.MAX_INDEX_LINE_BYTES, manifest.digest_of(HEADS)):
        stream_id, seq, link = parse_head_line(line)
        if stream_id in heads or not seq or len(heads) >= limits.MAX_STREAMS:
            raise BundleWrong("count_differs", HEADS, f"{stream_id} is there twice, or is one too many")
        heads[stream_id] = seq, link
    return heads


def _add(
    heads: dict[str, tuple[int, bytes]], streams: dict[str, _Stream], event: EventLine, number: int, ledger_id: str
) -> None:
    place = f"event {number}"
    fields = _fields_of(event, place)
    stream_id = fields["stream_id"]
    stream = streams.get(stream_id)
    if stream is None:
        if len(streams) >= limits.MAX_STREAMS:
            raise BundleWrong("count_differs", place, f"it is of one more stream than {limits.MAX_STREAMS:,}")
        session_id, run_id = fields.get("session_id"), fields.get("run_id")
        if not (STREAM_ID.fullmatch(stream_id) and _is_id(session_id) and _is_id(run_id)):
            raise BundleWrong("stream_identity", place, "it is of no stream that a ledger can have")
        seq, link = heads.pop(stream_id, (0, genesis_link(ledger_id, stream_id)))
        begun_us = None if seq else event.recorded_us
        stream = _Stream(seq, link, session_id, run_id, begun_us)
        streams[stream_id] = stream
    if (stream.session_id, stream.run_id) != (fields.get("session_id"), fields.get("run_id")):
        raise BundleWrong("stream_identity", place, f"it is of another session or run than {stream_id} was before")
    if event.seq != stream.seq + 1:
        raise BundleWrong("sequence_gap", place, f"it is said to be the event {event.seq} of {stream_id}")
    event.require_linked(stream.link, number)
    stream.seq, stream.link, stream.event_count = event.seq, event.link, stream.event_count + 1
    if fields.get("type") == "run.terminated":
        stream.ended_us = event.recorded_us
        stream.outcome, stream.reason = (_code(fields.get(name), place) for name in ("outcome", "reason"))


def _is_id(value: object) -> bool:
    """Whether there can be such a session or run, or none is named."""
    return value is None or (isinstance(value, str) and ID.fullmatch(value) is not None)


def _code(value: object, place: str) -> str:
    if not isinstance(value, str) or not CODE.fullmatch(value):
        raise BundleWrong("event_unreadable", place, "it ends a run in a way that there is not")
    return value


def _fields_of(event: EventLine, place: str) -> dict[str, Any]:
    try:
        fields = fields_in(event.body, place)
        stream_id, run_id, session_id = fields["stream_id"], fields.get("run_id"), fields.get("session_id")
    except KeyError:
        raise BundleWrong("event_unreadable", place, "its body is not that of an event") from None
    wanted = SYSTEM_STREAM
    if run_id is not None:
        wanted = run_stream(str(run_id))
    elif session_id is not None:
        wanted = session_stream(str(session_id))
    if stream_id != wanted:
        raise BundleWrong("stream_identity", place, "its session and run are not those of its stream")
    return fields
