"""A signed note is text that anybody can read, and whose signature is on the lines below it (C2SP signed-note).

Keys are Ed25519. The name of a key is part of what identifies it, and is what the signature's line begins with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ledger.audit.errors import BadSignature, InvalidKey, InvalidNote, NotSigned
from ledger.audit.notes.lines import decoded, encoded

MAX_NOTE_BYTES = 262_144
MAX_SIGNATURES = 64
"""A note must be allowed 16, each of up to some 7 kB."""
MAX_KEY_NAME_BYTES = 256

ALGORITHM = b"\x01"
"""Ed25519, among the kinds of signature that notes may bear."""
KEY_BYTES = 32
ID_BYTES = 4
PRIVATE_PREFIX = "PRIVATE+KEY+"
DASH = "\N{EM DASH} "


class Signature(NamedTuple):
    """One line below a note; `data` is the key's id and what it signed."""

    key_name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """The public half of a key; as text `NAME+ID+BASE64`."""

    name: str
    public: bytes
    """32 bytes, as in RFC 8032."""

    def __post_init__(self) -> None:
        _check_name(self.name)
        if len(self.public) != KEY_BYTES:
            raise InvalidKey(f"has {len(self.public)} bytes, not {KEY_BYTES}")

    @classmethod
    def parse(cls, text: str) -> VerifierKey:
        """The key that `str` made the text of; `InvalidKey` for anything else."""
        name, key_id, data = _parts_of_key(text)
        key = cls(name, data)
        if key_id != key.key_id:
            raise InvalidKey(f"bears the id {key.key_id}, and says another")
        return key

    def __str__(self) -> str:
        return f"{self.name}+{self.key_id}+{encoded(ALGORITHM + self.public)}"

    @property
    def id_bytes(self) -> bytes:
        """What a signature begins with: the first bytes of a hash of name and key."""
        return sha256(self.name.encode() + b"\n" + ALGORITHM + self.public).digest()[:ID_BYTES]

    @property
    def key_id(self) -> str:
        """The same as eight hexadecimal digits."""
        return self.id_bytes.hex()

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the 32 bytes, in hexadecimal: to be compared over another channel."""
        return sha256(self.public).hexdigest()

    def verifies(self, text: str, signature: bytes) -> bool:
        """Whether the key signed the text; `signature` is without the key's id."""
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, text.encode())
        except (InvalidSignature, ValueError):
            return False
        return True


class SigningKey:
    """A whole key; neither `str` nor `repr` shows its secret."""

    def __init__(self, name: str, seed: bytes) -> None:
        """`seed` is 32 random bytes, the private key of RFC 8032."""
        if len(seed) != KEY_BYTES:
            raise InvalidKey(f"has {len(seed)} bytes, not {KEY_BYTES}")
        self._seed = seed
        self._private = Ed25519PrivateKey.from_private_bytes(seed)
        self.verifier = VerifierKey(name, self._private.public_key().public_bytes_raw())

    @classmethod
    def parse(cls, secret: str) -> SigningKey:
        """The key that `secret` made the text of; `InvalidKey` for anything else."""
        if not secret.startswith(PRIVATE_PREFIX):
            raise InvalidKey(f"does not begin with {PRIVATE_PREFIX}")
        name, key_id, seed = _parts_of_key(secret.removeprefix(PRIVATE_PREFIX))
        key = cls(name, seed)
        if key_id != key.verifier.key_id:
            raise InvalidKey(f"bears the id {key.verifier.key_id}, and says another")
        return key

    def secret(self) -> str:
        """`PRIVATE+KEY+NAME+ID+BASE64`, the form that other tools for notes read, too."""
        return f"{PRIVATE_PREFIX}{self.name}+{self.verifier.key_id}+{encoded(ALGORITHM + self._seed)}"

    @property
    def name(self) -> str:
        """What its signatures begin with."""
        return self.verifier.name

    def sign(self, text: str) -> Signature:
        """What belongs below the text."""
        return Signature(self.name, self.verifier.id_bytes + self._private.sign(text.encode()))

    def __repr__(self) -> str:
        return f"SigningKey({self.verifier})"


def sign_note(text: str, *keys: SigningKey) -> str:
    """The text with the signatures of all these keys; it must end with a newline."""
    if not keys:
        raise InvalidNote("needs a key to sign it")
    _check_size(text)
    _check_characters(text)
    if not text.endswith("\n"):
        raise InvalidNote("has a text that does not end with a newline")
    signatures = [key.sign(text) for key in keys]
    note = text + "\n" + "".join(f"{DASH}{name} {encoded(data)}\n" for name, data in signatures)
    _check_size(note)
    return note


def open_note(note: str, keys: Iterable[VerifierKey]) -> str:
    """The text, if at least one of the keys signed it, and each that claims to have, did.

    Signatures of other keys are passed over. Raises `NotSigned`, `BadSignature`, or `InvalidNote` for what is no note.
    """
    text, signatures = split_note(note)
    trusted = {(key.name, key.id_bytes): key for key in keys}
    seen: set[VerifierKey] = set()
    for name, data in signatures:
        key = trusted.get((name, data[:ID_BYTES]))
        if key is None:
            continue
        if key in seen:
            raise InvalidNote(f"is signed twice by {name}")
        if not key.verifies(text, data[ID_BYTES:]):
            raise BadSignature(name)
        seen.add(key)
    if not seen:
        raise NotSigned(tuple(sorted({str(key) for key in trusted.values()})))
    return text


def split_note(note: str) -> tuple[str, list[Signature]]:
    """Text and signatures, none of which was looked at: nothing of it may be believed."""
    _check_size(note)
    _check_characters(note)
    before, divider, below = note.rpartition("\n\n")
    if not divider or not below.endswith("\n"):
        raise InvalidNote("has no signatures below an empty line")
    lines = below[:-1].split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise InvalidNote(f"has {len(lines)} signatures, and {MAX_SIGNATURES} is the limit")
    return before + "\n", [_signature_of(line) for line in lines]


def _signature_of(line: str) -> Signature:
    name, space, data64 = line.removeprefix(DASH).partition(" ")
    data = decoded(data64)
    if not line.startswith(DASH) or not space or not _is_name(name) or data is None or len(data) <= ID_BYTES:
        raise InvalidNote("has a line below it that is no signature")
    return Signature(name, data)


def _parts_of_key(text: str) -> tuple[str, str, bytes]:
    name, *others = text.split("+", 2)
    if len(others) != 2:
        raise InvalidKey("is not NAME+ID+BASE64")
    data = decoded(others[1])
    if data is None or data[:1] != ALGORITHM or len(data) != 1 + KEY_BYTES:
        raise InvalidKey("is no Ed25519 key")
    return name, others[0], data[1:]


def _check_name(name: str) -> None:
    if not _is_name(name):
        raise InvalidKey("has a name that is empty, too long, or has a space or '+' in it")


def _is_name(name: str) -> bool:
    size_bytes = _size_bytes(name)
    if size_bytes is None or not 0 < size_bytes <= MAX_KEY_NAME_BYTES:
        return False
    return not any(character.isspace() or character == "+" or character < " " for character in name)


def _check_size(note: str) -> None:
    # Characters first: of a huge text, no copy is made.
    size_bytes = len(note) if len(note) > MAX_NOTE_BYTES else _size_bytes(note)
    if size_bytes is None:
        raise InvalidNote("is not UTF-8")
    if size_bytes > MAX_NOTE_BYTES:
        raise InvalidNote(f"is larger than {MAX_NOTE_BYTES} bytes")


def _check_characters(text: str) -> None:
    if any(character < " " and character != "\n" for character in text):
        raise InvalidNote("has control characters in it")


def _size_bytes(text: str) -> int | None:
    """Of the text in UTF-8; None if it cannot be written so."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return None
