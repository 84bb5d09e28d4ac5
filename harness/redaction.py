"""What is kept of a content: all of it, its digest, or what a function leaves of it, which fails closed (SPEC E10).

Of a content that was redacted, everything on record is of its redacted form: bytes, size and digest. A digest of the
original beside a form that gives away most of it would let anybody try what was taken out.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from harness.content import MAX_CONTENT_BYTES, Capture, Content, Redactor, encode_content
from harness.events import Redaction

log = logging.getLogger(__name__)

MAX_MEDIA_TYPE_CHARS = 256


class Captured(NamedTuple):
    """A content as it may be recorded."""

    content: Content
    is_kept: bool
    """Whether its bytes are to be kept, as far as their number and the capture policy go."""
    redaction: Redaction | None = None


def captured(content: Content, capture: Capture | Redactor) -> Captured:
    """What may be recorded of the content. Calls the redacting function, so call this without the run's lock."""
    if isinstance(capture, Capture):
        return Captured(content, capture is Capture.FULL and len(content.data) <= MAX_CONTENT_BYTES)
    try:
        redacted = _checked(capture(content))
    except Exception as error:  # noqa: BLE001 - the function is the application's
        # Not its words, which may quote what it should have taken out.
        log.warning("a content could not be redacted (%s): only its digest is kept", type(error).__name__)
        return Captured(content, False, "FAILED")
    return Captured(redacted, len(redacted.data) <= MAX_CONTENT_BYTES, "APPLIED")


def _checked(redacted: object) -> Content:
    if isinstance(redacted, str | bytes):
        return encode_content(redacted)
    if not isinstance(redacted, Content) or type(redacted.data) is not bytes:
        raise TypeError("a redacting function gives a content, a text or bytes")
    media_type = redacted.media_type
    if not isinstance(media_type, str) or not media_type.isascii() or not media_type.isprintable():
        raise TypeError("a media type is printable ASCII")
    if not 0 < len(media_type) <= MAX_MEDIA_TYPE_CHARS:
        raise TypeError("a media type is short")
    return redacted
