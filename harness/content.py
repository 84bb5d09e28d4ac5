"""Free-form text and bytes, kept apart from events and named there by a salted digest (SPEC E10, D10)."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from inspect import iscoroutinefunction
from typing import Any, NamedTuple

from pydantic import BaseModel

from harness.errors import InvalidInput

CONTENT_DOMAIN = b"tachograph/content/v1\0"
MAX_CONTENT_BYTES = 64 * 1024 * 1024
"""One content that is kept; of a bigger one only size and digest are."""
MAX_REMEMBERED_CONTENTS = 1024
"""Distinct contents of one run whose salt is remembered; an older one that recurs gets a new salt and row."""

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
OCTETS = "application/octet-stream"


class Capture(Enum):
    """How much of a content is kept."""

    FULL = "full"
    DIGEST_ONLY = "digest_only"


@dataclass(frozen=True, slots=True)
class Content:
    """Opaque bytes with a media type."""

    data: bytes
    media_type: str
    fingerprint: bytes = dataclasses.field(init=False, repr=False, compare=False)
    """SHA-256 of the data: tells equal contents of a run apart from others, and never leaves memory."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fingerprint", hashlib.sha256(self.data).digest())


Redactor = Callable[[Content], Content | str | bytes]
"""Gives what may be kept of a content. If it raises, or gives anything else, only the original's digest is kept."""


@dataclass(frozen=True, slots=True)
class CapturePolicy:
    """What is kept of each kind of content: a `Capture`, or a function that redacts.

    Model input is by default digest only, as it holds the history.
    """

    query: Capture | Redactor = Capture.FULL
    answer: Capture | Redactor = Capture.FULL
    model_input: Capture | Redactor = Capture.DIGEST_ONLY
    model_output: Capture | Redactor = Capture.FULL
    tool_input: Capture | Redactor = Capture.FULL
    tool_output: Capture | Redactor = Capture.FULL
    guard_input: Capture | Redactor = Capture.DIGEST_ONLY
    guard_output: Capture | Redactor = Capture.FULL
    error: Capture | Redactor = Capture.FULL

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            capture = getattr(self, field.name)
            if not isinstance(capture, Capture) and (not callable(capture) or iscoroutinefunction(capture)):
                raise InvalidInput(f"capture.{field.name}", "must be a Capture or a plain function that redacts")


class SealedContent(NamedTuple):
    """Content as a journal stores it: `data` is None where only the digest is kept."""

    digest: str
    """`content_digest` of salt, media type and data, in lower-case hexadecimal."""
    salt: bytes
    size_bytes: int
    media_type: str
    data: bytes | None


def content_digest(salt: bytes, content: Content) -> str:
    """SHA-256 over domain, 32 bytes of salt, media type, a zero byte and the data."""
    hashed = hashlib.sha256(CONTENT_DOMAIN + salt + content.media_type.encode("ascii") + b"\0")
    hashed.update(content.data)
    return hashed.hexdigest()


def encode_content(value: object) -> Content:
    """Any Python value as bytes: text as UTF-8, bytes as they are, JSON values as ASCII JSON, the rest by `repr`.

    A string that UTF-8 cannot carry (a lone surrogate) becomes JSON, which reads back as exactly that string.
    """
    if isinstance(value, Content):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Content(bytes(value), OCTETS)
    if isinstance(value, str):
        try:
            return Content(value.encode("utf-8"), TEXT)
        except UnicodeEncodeError:
            pass
    try:
        return Content(_JSON.encode(value).encode("ascii"), JSON)
    except Exception:  # noqa: BLE001 - the value is the application's, and so is what its methods raise
        return Content(_look(value).encode("utf-8", "backslashreplace"), TEXT)


def _look(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - as above
        return object.__repr__(value)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    return _look(value)


_JSON = json.JSONEncoder(default=_plain, separators=(",", ":"))


class Sealer:
    """Salts and digests the contents of one run: equal contents share one salt and digest (SPEC D10)."""

    def __init__(self, new_salt: Callable[[], bytes]) -> None:
        self._new_salt = new_salt
        self._seen: OrderedDict[tuple[bytes, str], tuple[str, bytes, bool]] = OrderedDict()
        """Digest, salt, and whether the bytes were submitted, by fingerprint and media type."""
        self._erasure_count = 0

    def seal(self, content: Content, *, keep: bool) -> tuple[SealedContent, bool]:
        """The sealed content, and whether it, or what is to be kept of it, is new and so has to be submitted."""
        key = (content.fingerprint, content.media_type)
        seen = self._seen.get(key)
        if seen is None:
            salt = self._new_salt()
            digest, was_kept = content_digest(salt, content), False
            if len(self._seen) >= MAX_REMEMBERED_CONTENTS:
                self._seen.popitem(last=False)
        else:
            digest, salt, was_kept = seen
            self._seen.move_to_end(key)
        self._seen[key] = digest, salt, keep or was_kept
        is_new = seen is None or (keep and not was_kept)
        data = content.data if is_new and keep else None
        return SealedContent(digest, salt, len(content.data), content.media_type, data), is_new

    def note_erasures(self, erasure_count: int) -> None:
        """Content of the run was erased so often: whatever recurs must not bring back an erased digest (SPEC D19)."""
        if erasure_count > self._erasure_count:
            self._erasure_count = erasure_count
            self.forget()

    def forget(self) -> None:
        """Forget every salt: what was sealed may not have been stored."""
        self._seen.clear()
