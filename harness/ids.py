"""Ids, names and keys: what they may look like, and where new ones come from (SPEC D21, H1b)."""

from __future__ import annotations

import os
import re
import threading
from functools import lru_cache
from typing import Protocol, TypeGuard
from urllib.parse import quote

from harness.errors import InvalidInput

MAX_ID_CHARS = 128
MAX_NAME_CHARS = 256
MAX_BOUNDARY_CHARS = 1024
SALT_BYTES = 32
SALTS_DRAWN = 64
"""Salts that are drawn from the system at a time."""

ID_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
CODE_PATTERN = r"[A-Za-z][A-Za-z0-9_.]{0,63}"
NAME_PATTERN = r"[ -~]{1,256}"

_ID = re.compile(ID_PATTERN)
_CODE = re.compile(CODE_PATTERN)
_NAME = re.compile(NAME_PATTERN)


def check_id(field: str, value: object) -> str:
    """`value` if it is a safe id, else `InvalidInput` that names `field`."""
    if not isinstance(value, str):
        raise InvalidInput(field, f"must be a string, not {type(value).__name__}")
    if not value.strip():
        raise InvalidInput(field, "must not be blank")
    if len(value) > MAX_ID_CHARS:
        raise InvalidInput(field, f"must be at most {MAX_ID_CHARS} characters, not {len(value)}")
    if not _ID.fullmatch(value):
        raise InvalidInput(field, "must begin with a letter or digit and hold only letters, digits, '.', '_' and '-'")
    return _plain(value)


def is_code(value: object) -> TypeGuard[str]:
    """Whether `value` is a code such as `CHAT_GRAPH` or `run.started`."""
    return isinstance(value, str) and _CODE.fullmatch(value) is not None


def check_code(field: str, value: object) -> str:
    """`value` if it is a code, else `InvalidInput`."""
    if not is_code(value):
        raise InvalidInput(field, "must begin with a letter and hold 1 to 64 letters, digits, '_' or '.'")
    return _plain(value)


def check_name(field: str, value: object) -> str:
    """`value` if it is 1 to 256 printable ASCII characters and not blank, else `InvalidInput`."""
    if not isinstance(value, str) or not _NAME.fullmatch(value) or not value.strip():
        raise InvalidInput(field, f"must be 1 to {MAX_NAME_CHARS} printable ASCII characters, and not blank")
    return _plain(value)


def _plain(value: str) -> str:
    """The characters alone: a member of an enumeration that is a string, too, looks otherwise where it is formatted."""
    return str.__str__(value)


SYSTEM_STREAM = "sys"
"""Id of the stream that holds what is decided about the ledger itself (SPEC D2)."""


def run_stream(run_id: str) -> str:
    """Id of the stream that holds a run's boundary events (SPEC D2)."""
    return f"r:{run_id}"


def session_stream(session_id: str) -> str:
    """Id of the stream that holds a session's own events (SPEC D2)."""
    return f"s:{session_id}"


def boundary_id(path: tuple[str, ...], kind: str, name: str, ordinal: int, attempt: int) -> str:
    """Boundary identity: `/`-joined, percent-escaped segments (SPEC D7)."""
    boundary = "/".join([*map(_escaped, path), _escaped(kind), _escaped(name), str(ordinal), str(attempt)])
    if len(boundary) > MAX_BOUNDARY_CHARS:
        raise InvalidInput("boundary", f"must be at most {MAX_BOUNDARY_CHARS} characters, not {len(boundary)}")
    return boundary


@lru_cache(maxsize=1024)
def _escaped(segment: str) -> str:
    return quote(segment, safe="-._~:@+,= ")


class IdSource(Protocol):
    """Where new ids and salts come from; injected, so that tests can tell what they will be."""

    def run_id(self) -> str:
        """A new id for a run, unique for ever."""

    def writer_id(self) -> str:
        """A new id for one writer of events, unique for ever."""

    def salt(self) -> bytes:
        """32 unpredictable bytes."""

    def fraction(self) -> float:
        """A number from 0 to below 1, for jitter."""


class RandomIds:
    """Ids from the operating system's randomness; 80 bits for a run, 64 for a writer."""

    def __init__(self) -> None:
        # A collection may come while this thread has it, and end a run.
        self._lock = threading.RLock()
        self._salts: list[bytes] = []
        self._process_id = os.getpid()

    def run_id(self) -> str:
        return f"run-{os.urandom(10).hex()}"

    def writer_id(self) -> str:
        return f"w{os.urandom(8).hex()}"

    def salt(self) -> bytes:
        # Asking the system for each salt can cost as much as the commit that stores it.
        with self._lock:
            while not self._salts or self._process_id != os.getpid():
                drawn = os.urandom(SALT_BYTES * SALTS_DRAWN)
                self._salts = [drawn[at : at + SALT_BYTES] for at in range(0, len(drawn), SALT_BYTES)]
                self._process_id = os.getpid()
            return self._salts.pop()

    def fraction(self) -> float:
        return (int.from_bytes(os.urandom(7)) >> 3) / (1 << 53)
