"""What can be wrong with a token that somebody names."""

from __future__ import annotations

from ledger.errors import LedgerError


class TokenNotFound(LedgerError, LookupError):
    """No token has that id, or none of that owner can be used."""

    code = "token_not_found"

    def __init__(self, named: str) -> None:
        self.named = named
        super().__init__(f"there is no token {named}")
