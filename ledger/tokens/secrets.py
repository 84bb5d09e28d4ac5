"""Secrets: 256 random bits as text, told once, of which only the SHA-256 is kept.

A plain hash is enough, and right: slow and salted ones protect what people choose, which can be guessed from a list.
256 random bits cannot, however fast each guess is; and this hash is computed for every request.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from hashlib import sha256

from harness.errors import InvalidInput
from harness.ids import IdSource, check_id

DOMAIN = b"tachograph/secret/v1\0"
SECRET_CHARS_MAX = 256
"""Of whatever somebody presents; longer than any secret of ours."""


def new_secret(ids: IdSource) -> str:
    """What only its holder will know."""
    return urlsafe_b64encode(ids.salt()).rstrip(b"=").decode()


def hash_of(secret: str) -> bytes:
    """What is kept of it."""
    return sha256(DOMAIN + secret.encode("utf-8", "surrogatepass")).digest()


def is_secret(secret: str, kept: bytes) -> bool:
    """Whether this is the secret of which `kept` is the hash; takes as long, wherever the two differ."""
    return hmac.compare_digest(hash_of(secret), kept)


def bearer(token_id: str, secret: str) -> str:
    """A token as its holder presents it: its id, by which it is found, and the secret, by which it is proven."""
    return f"{token_id}.{secret}"


def parts_of(presented: str) -> tuple[str, str] | None:
    """The id and the secret of what somebody presents as a token; None where it cannot be one."""
    token_id, _, secret = presented[:SECRET_CHARS_MAX].rpartition(".")
    try:
        return check_id("token_id", token_id), secret
    except InvalidInput:
        return None
