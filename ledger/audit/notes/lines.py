"""What is on the lines of notes and proofs: standard base64, and decimal numbers, each in one way only."""

from __future__ import annotations

import base64
import binascii
import re

MAX_NUMBER = (1 << 63) - 1
"""Sizes and indexes are what a database can hold."""

_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")


def encoded(data: bytes) -> str:
    """Base64 with padding (RFC 4648, section 4)."""
    return base64.b64encode(data).decode("ascii")


def decoded(text: str) -> bytes | None:
    """What `encoded` made the text of; None if it is anything else."""
    try:
        data = binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
    except ValueError:
        return None
    # The last character has bits that stand for nothing, and must not differ.
    return data if encoded(data) == text else None


def number(text: str) -> int | None:
    """A number from 0 to `MAX_NUMBER` without leading zeros; None if the text is anything else."""
    if not _NUMBER.fullmatch(text):
        return None
    value = int(text)
    return value if value <= MAX_NUMBER else None
