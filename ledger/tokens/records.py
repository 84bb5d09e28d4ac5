"""A token as the ledger knows it, and what it may be good for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from harness.errors import InvalidInput

ERASE: Final = "erase"
RIGHTS: Final = ("read", "annotate", "cancel", "audit", "erase")
"""To read runs; to judge them; to stop them; to see what is on record about the ledger itself; to ask for erasures."""

TokenState = Literal["active", "expired", "revoked"]


@dataclass(frozen=True, slots=True)
class Token:
    """Who may do what, and until when."""

    token_id: str
    owner: str
    """A pseudonym, as it is kept for ever."""
    rights: tuple[str, ...]
    session_prefix: str | None
    """How the ids of the only sessions begin that it opens; None for all."""
    created_us: int
    expires_us: int | None
    revoked_us: int | None
    secret_hash: bytes = field(repr=False)

    def state(self, now_us: int) -> TokenState:
        """Whether it opens anything."""
        if self.revoked_us is not None:
            return "revoked"
        return "expired" if self.expires_us is not None and self.expires_us <= now_us else "active"


class TokenFinder(Protocol):
    """What whoever guards a ledger asks of each request."""

    async def are_any(self) -> bool:
        """Whether a token was ever made; until then nobody needs one."""

    async def by_bearer(self, presented: str) -> Token | None:
        """The active token that this is."""

    async def by_session(self, secret: str) -> Token | None:
        """The active token with which somebody signed in, in a session that goes on."""


def check_rights(rights: Iterable[str]) -> tuple[str, ...]:
    """The rights, each once and in their order; `InvalidInput` for none, and for others."""
    given = set(rights)
    unknown = sorted(given.difference(RIGHTS))
    if unknown or not given:
        raise InvalidInput("rights", f"must be some of {', '.join(RIGHTS)}, not {', '.join(unknown) or 'none'}")
    return tuple(right for right in RIGHTS if right in given)
