"""How keys for checkpoints come into use, are replaced and revoked: the file first, then the event that says so.

Each step can be repeated, so what a crash left half done is finished by doing it again.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.events import KeyCreated, KeyRevoked, KeyRotated, SystemEvent
from harness.ids import IdSource, check_name
from ledger.audit.errors import InvalidKey, KeyFileError, KeyNotFound
from ledger.audit.notes.notes import SigningKey, VerifierKey
from ledger.audit.signing.keys import (
    default_origin,
    facts_of,
    known_keys,
    read_key_file,
    require_name,
    write_key_file,
)
from ledger.errors import EventIdReused
from ledger.store.place import sync

if TYPE_CHECKING:
    from ledger.ledger import Ledger

MAX_RETIRED_BYTES = 262_144


def default_key_path(ledger: Path) -> Path:
    """Where the key of a ledger in a file lies: beside it."""
    return ledger.with_name(f"{ledger.name}.key")


async def create_key(
    ledger: Ledger, path: Path, ids: IdSource, *, origin: str | None, actor: str | None
) -> VerifierKey:
    """A new key in a new file; `KeyFileError` where a key that is in use lies there."""
    ledger_id = await ledger.reader.ledger_id()
    _check_actor(actor)
    name = origin or default_origin(ledger_id)
    require_name(name, ledger_id)
    coming = path.with_name(f"{path.name}.new")
    _require_free(path, coming)
    key = found_or_made(coming, name, ids)
    if key.name != name:
        raise KeyFileError(coming, f"is a key for {key.name} that was not finished: finish it first")
    await _say(ledger, KeyCreated, key.verifier, actor=actor)
    _put(coming, path)
    return key.verifier


async def rotate_key(
    ledger: Ledger, path: Path, ids: IdSource, *, origin: str | None, actor: str | None
) -> tuple[VerifierKey, VerifierKey]:
    """The key that was in the file, of which only the public half is kept, and the one that is there from now on."""
    old = read_key_file(path)
    _check_actor(actor)
    require_name(origin or old.name, await ledger.reader.ledger_id())
    coming = path.with_name(f"{path.name}.next")
    new = found_or_made(coming, origin or old.name, ids)
    if origin not in (None, new.name):
        raise KeyFileError(coming, f"is that of a rotation to {new.name}, which was not finished: finish it first")
    _retire(path, old.verifier)
    await _say(ledger, KeyRotated, new.verifier, replaced_key_id=old.verifier.key_id, actor=actor)
    _move(coming, path)
    return old.verifier, new.verifier


async def revoke_key(ledger: Ledger, key_id: str, *, reason: str, actor: str | None) -> bool:
    """Let nothing be signed with it from now on; False if it was revoked before. `KeyNotFound` if nobody knows it."""
    known = (await known_keys(ledger.reader)).get(key_id)
    if known is None:
        raise KeyNotFound(key_id)
    if known.revoked_us is None:
        await ledger.record_system(KeyRevoked, key_id=key_id, reason=reason, actor=actor)
    return known.revoked_us is None


def public_keys(path: Path) -> list[VerifierKey]:
    """The public half of the key in the file, and of those that were there before, the newest first."""
    return [read_key_file(path).verifier, *reversed(_retired(path))]


def _check_actor(actor: str | None) -> None:
    """`InvalidInput` for what no event can say of who did it, before anything is made."""
    if actor is not None:
        check_name("actor", actor)


def _retired_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.retired")


def _retired(path: Path) -> list[VerifierKey]:
    """Those that were replaced; each line is one."""
    retired = _retired_path(path)
    try:
        with retired.open("rb") as file:
            lines = file.read(MAX_RETIRED_BYTES).decode("utf-8").split()
        return [VerifierKey.parse(line) for line in lines]
    except FileNotFoundError:
        return []
    except (OSError, InvalidKey, ValueError):
        raise KeyFileError(retired, "holds no public keys, each on a line") from None


def _retire(path: Path, key: VerifierKey) -> None:
    if key in _retired(path):
        return
    try:
        with _retired_path(path).open("a", encoding="utf-8") as file:
            file.write(f"{key}\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise KeyFileError(_retired_path(path), f"cannot be added to ({error.strerror})") from error


def found_or_made(path: Path, name: str, ids: IdSource) -> SigningKey:
    """The key in the file, which is made, with that name, where there is none."""
    if path.exists():
        return read_key_file(path)
    key = SigningKey(name, ids.salt())
    write_key_file(path, key)
    return key


def _require_free(path: Path, coming: Path) -> None:
    if not path.exists():
        return
    if coming.exists() and coming.samefile(path):
        # Whoever made it died before the last step.
        coming.unlink()
    # It may be another ledger's, so it is not taken even where this one has not heard of it.
    raise KeyFileError(path, "exists already, and a key is never overwritten")


def _put(coming: Path, path: Path) -> None:
    try:
        # Other than a rename it does not put it in another's place.
        path.hardlink_to(coming)
        coming.unlink()
        sync(path.parent)
    except FileExistsError:
        raise KeyFileError(path, "exists already, and a key is never overwritten") from None
    except OSError as error:
        raise KeyFileError(path, f"cannot be made ({error.strerror})") from error


def _move(coming: Path, path: Path) -> None:
    try:
        coming.replace(path)
        sync(path.parent)
    except OSError as error:
        raise KeyFileError(path, f"cannot be replaced ({error.strerror})") from error


async def _say(ledger: Ledger, model: type[SystemEvent], key: VerifierKey, **facts: Any) -> None:
    # Under one id, so that it is said once, however often it is tried.
    said: dict[str, Any] = {"event_id": f"key-{key.key_id}:1", **facts_of(key), **facts}
    with contextlib.suppress(EventIdReused):
        await ledger.record_system(model, **said)
