"""A submission as the writer takes it: bytes and hashes made in the caller's thread, before any lock is held."""

from __future__ import annotations

from typing import NamedTuple

import orjson

from harness.content import SealedContent
from harness.events import EVENT_TYPES, Event, RunEvent, RunTerminated, parse_event
from harness.ids import run_stream
from harness.journal import Submission
from ledger.bytes import body_hash, body_of
from ledger.compression import pack
from ledger.errors import MisplacedEvent, TooLarge
from ledger.sizes import MAX_CONTENT_BYTES


class PreparedEvent:
    """An event with the bytes that are stored of it."""

    __slots__ = ("_event", "body", "hash")

    def __init__(self, event: Event, body: bytes, hash_of_body: bytes) -> None:
        self._event: Event | None = event
        self.body = body
        self.hash = hash_of_body

    @property
    def event(self) -> Event:
        """What the bytes say."""
        if self._event is None:
            self._event = parse_event(orjson.loads(self.body))
        return self._event

    def shrink(self) -> None:
        """Keep the bytes only, which take a fifth of the memory; the event is made anew of them when it is needed."""
        self._event = None


class PackedContent(NamedTuple):
    """A content as it is stored: fields are columns of `content`, in order."""

    digest: str
    salt: bytes
    size_bytes: int
    """Of what was captured, however it is stored."""
    media_type: str
    encoding: str | None
    data: bytes | None
    state: str


class Append(NamedTuple):
    """What is appended to one run all or none (SPEC D22)."""

    session_id: str
    run_id: str
    events: tuple[PreparedEvent, ...]
    contents: tuple[PackedContent, ...]
    resumes: bool
    size_bytes: int
    is_awaited: bool = True
    seq_expected: int | None = None
    """The position it was decided on; None where any will do."""
    ends_run: bool = False

    @property
    def stream_id(self) -> str:
        return run_stream(self.run_id)

    @property
    def event_type(self) -> str:
        """The type of its first event, to name it by."""
        return self.events[0].event.type

    def shrink(self) -> None:
        """Take as little memory as possible, for a long wait."""
        for prepared in self.events:
            prepared.shrink()


def prepare_event(event: Event) -> PreparedEvent:
    """The event's bytes and their hash; `ValueError` if it cannot be written."""
    body = body_of(event)
    return PreparedEvent(event, body, body_hash(body))


def prepare(submission: Submission, *, seq_expected: int | None = None) -> Append:
    """The submission ready to be written; `ValueError` if some of it cannot be (SPEC D9, E4)."""
    if not submission.events:
        raise MisplacedEvent("nothing", "cannot be submitted: an append has at least one event")
    size_bytes = 0
    prepared: list[PreparedEvent] = []
    for event in submission.events:
        _check_place(event, submission)
        one = prepare_event(event)
        prepared.append(one)
        size_bytes += len(one.body)
    contents = tuple([pack_content(content) for content in submission.contents])
    for content in contents:
        size_bytes += len(content.data or b"")
    return Append(
        session_id=submission.session_id,
        run_id=submission.run_id,
        events=tuple(prepared),
        contents=contents,
        resumes=submission.resumes,
        size_bytes=size_bytes,
        is_awaited=submission.is_awaited,
        seq_expected=seq_expected,
        ends_run=any(isinstance(event, RunTerminated) for event in submission.events),
    )


def pack_content(content: SealedContent) -> PackedContent:
    """The content as it is stored; `TooLarge` above `MAX_CONTENT_BYTES`, and then it is not stored at all."""
    about = (content.digest, content.salt, content.size_bytes, content.media_type)
    if content.data is None:
        return PackedContent(*about, None, None, "digest_only")
    if len(content.data) > MAX_CONTENT_BYTES:
        raise TooLarge("a content", size_bytes=len(content.data), limit_bytes=MAX_CONTENT_BYTES)
    data, encoding = pack(content.data)
    return PackedContent(*about, encoding, data, "stored")


def _check_place(event: Event, submission: Submission) -> None:
    if EVENT_TYPES.get(event.type) is not type(event) or not isinstance(event, RunEvent):
        raise MisplacedEvent(event.type, "is no event of a run")
    if event.session_id != submission.session_id or event.run_id != submission.run_id:
        raise MisplacedEvent(event.type, "belongs to another run than it is submitted for")
