"""Who asks, and what that lets him do; it travels in the request's scope, from the guard to whoever needs it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from starlette.types import Scope

from viewer.access.rights import Right

SCOPE_KEY: Final = "viewer.principal"


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody with a token, or anybody where no tokens were ever made."""

    owner: str | None
    """A pseudonym; None for anybody."""
    token_id: str | None
    rights: frozenset[Right]
    session_prefix: str | None = None
    """How the ids of the only sessions begin that he sees; None for all."""
    session_secret: str | None = field(default=None, repr=False)
    """Of the session that he signed in to; None for programs, which send their token each time."""

    def sees(self, session_id: str) -> bool:
        """Whether a session is one of his."""
        return self.session_prefix is None or session_id.startswith(self.session_prefix)


ANYBODY: Final = Principal(None, None, frozenset(Right))
"""Whoever reaches a server for which no tokens were made."""


def owner_in(scope: Scope) -> str | None:
    """The owner of the token that a request came with."""
    asking = principal_in(scope)
    return None if asking is None else asking.owner


def may(scope: Scope, right: Right) -> bool:
    """Whether whoever asks has the right; where nobody was asked who he is, everybody has it."""
    asking = principal_in(scope)
    return asking is None or right in asking.rights


def principal_in(scope: Scope) -> Principal | None:
    """Who asks; None where no right was needed, and so nobody was asked who he is."""
    found = scope.get(SCOPE_KEY)
    return found if isinstance(found, Principal) else None
