"""A private key lies in a file outside the database, for its owner alone; events say which keys there were."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from ledger.audit.errors import InvalidKey, KeyFileError, ReplacedKey, RevokedKey
from ledger.audit.notes.notes import SigningKey, VerifierKey
from ledger.records import RecordedEvent
from ledger.store.place import sync

MAX_KEY_FILE_BYTES = 4_096
PURPOSE = "CHECKPOINT"
OWN_NAMES = "tachograph/"
"""What those names begin with that are made of a ledger's id."""
ALGORITHM = "ED25519"
MAX_NAME_CHARS = 160
"""So that there is room for what a restored log has below its name."""
NAME = re.compile(f"[ -~]{{1,{MAX_NAME_CHARS}}}")
"""What a bundle can hold, and nobody takes for another name that looks like it."""
OTHERS = stat.S_IRWXG | stat.S_IRWXO
PAGE_EVENTS = 1_000


def default_origin(ledger_id: str) -> str:
    """How checkpoints name the log of a ledger where nobody says otherwise."""
    return f"{OWN_NAMES}{ledger_id}"


def require_name(origin: str, ledger_id: str) -> None:
    """`InvalidKey` for what the log cannot be called, such as what another ledger's log is called by default."""
    if not NAME.fullmatch(origin):
        raise InvalidKey(f"has a name that is not of 1 to {MAX_NAME_CHARS} printable ASCII characters")
    if origin.startswith(OWN_NAMES) and origin != default_origin(ledger_id):
        raise InvalidKey(f"is that of another ledger: {origin}")


def read_key_file(path: Path) -> SigningKey:
    """The key in the file; `KeyFileError` where there is none, or where others than its owner may read it."""
    try:
        # Whatever it is, nothing is waited for.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            mode = os.fstat(descriptor).st_mode
            text = file.read(MAX_KEY_FILE_BYTES + 1) if stat.S_ISREG(mode) else b""
    except FileNotFoundError:
        raise KeyFileError(path, "does not exist: `tachograph key create` makes a key") from None
    except OSError as error:
        raise KeyFileError(path, f"cannot be read as a key ({error.strerror})") from error
    if not stat.S_ISREG(mode) or len(text) > MAX_KEY_FILE_BYTES:
        raise KeyFileError(path, "is no file of a key")
    if mode & OTHERS:
        raise KeyFileError(path, f"may be read by others than its owner: `chmod 600 {path}`")
    try:
        return SigningKey.parse(text.decode("utf-8").strip())
    except (InvalidKey, ValueError):
        # Not even a part of it is quoted.
        raise KeyFileError(path, "holds no key of the form PRIVATE+KEY+NAME+ID+BASE64") from None


def write_key_file(path: Path, key: SigningKey) -> None:
    """Make the file, for its owner alone; `KeyFileError` where there is one already, or where none can be made."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise KeyFileError(path, "exists already, and a key is never overwritten") from None
    except OSError as error:
        raise KeyFileError(path, f"cannot be made ({error.strerror})") from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f"{key.secret()}\n")
            file.flush()
            os.fsync(descriptor)
        sync(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            path.unlink()
        raise KeyFileError(path, f"cannot be written ({error.strerror})") from error


@dataclass(frozen=True, slots=True)
class KnownKey:
    """What the ledger's own stream says of a key."""

    key_id: str
    fingerprint: str | None
    created_us: int
    replaced_by: str | None = None
    revoked_us: int | None = None
    reason: str | None = None

    @property
    def state(self) -> str:
        return "revoked" if self.revoked_us is not None else "replaced" if self.replaced_by else "in use"


class SystemReader(Protocol):
    """Reads the ledger's own stream, page by page."""

    async def system_events(self, after_seq: int = 0, limit: int = 200) -> list[RecordedEvent]: ...


class KeyHistory:
    """What the ledger's own stream says of who may sign, and under which name, as far as it was read."""

    def __init__(self) -> None:
        self.keys: dict[str, KnownKey] = {}
        """By their ids, in the order in which they came into use."""
        self._restore_ids: list[str] = []
        self._after_seq = 0

    async def read_on(self, reader: SystemReader) -> None:
        """Hear of what has come since."""
        while page := await reader.system_events(self._after_seq, PAGE_EVENTS):
            self._after_seq = page[-1].seq
            _fold(self.keys, page)
            self._restore_ids += [event.fields["restore_id"] for event in page if event.type == "ledger.restored"]

    def origins_of(self, name: str) -> list[str]:
        """What the log has been called since it has that name, and last what it is called now.

        Each time that it is restored it begins a new one: the ledger whose backup it was may go on under the old one.
        """
        return [name, *(f"{name}/{restore_id}" for restore_id in self._restore_ids)]

    def require_usable(self, key_id: str) -> None:
        """`RevokedKey` or `ReplacedKey` where the key may sign nothing any more."""
        known = self.keys.get(key_id)
        if known is not None and known.revoked_us is not None:
            raise RevokedKey(key_id)
        if known is not None and known.replaced_by is not None:
            raise ReplacedKey(key_id, known.replaced_by)


async def known_keys(reader: SystemReader) -> dict[str, KnownKey]:
    """The keys for checkpoints by their ids, in the order in which they came into use."""
    history = KeyHistory()
    await history.read_on(reader)
    return history.keys


def _fold(keys: dict[str, KnownKey], page: Iterable[RecordedEvent]) -> None:
    for event in page:
        said = event.fields
        if event.type in ("key.created", "key.rotated") and said["purpose"] == PURPOSE:
            key_id = said["key_id"]
            keys.setdefault(key_id, KnownKey(key_id, said.get("fingerprint"), event.occurred_us))
            replaced = keys.get(said.get("replaced_key_id", ""))
            if replaced is not None:
                keys[replaced.key_id] = replace(replaced, replaced_by=key_id)
        elif event.type == "key.revoked" and said["key_id"] in keys:
            key = keys[said["key_id"]]
            keys[key.key_id] = replace(key, revoked_us=event.occurred_us, reason=said["reason"])


def facts_of(key: VerifierKey) -> dict[str, str]:
    """What an event says of a key; the key itself is in none."""
    return {
        "key_id": key.key_id,
        "purpose": PURPOSE,
        "algorithm": ALGORITHM,
        "fingerprint": key.fingerprint,
    }
