"""The tokens of an open ledger: made, revoked, and signed in with. Every making and revoking is on record.

A row and the event that tells of it are one transaction. Rows stay when a token is revoked or expires, so that a ledger
that ever had a token never opens to everybody again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from harness.clock import WallClock
from harness.errors import InvalidInput
from harness.events import TokenCreated, TokenRevoked
from harness.ids import IdSource, check_code, check_id, check_name
from ledger.append.unfolded import Statement
from ledger.reading.reader import LedgerReader
from ledger.tokens import statements as sql
from ledger.tokens.errors import TokenNotFound
from ledger.tokens.reading import TokenReading
from ledger.tokens.records import Token, check_rights
from ledger.tokens.secrets import bearer, hash_of, new_secret

LOGIN_CODE_TTL_S: Final = 600
"""How long a link to sign in with can be used."""
SESSION_TTL_S: Final = 12 * 3600
"""How long somebody stays signed in: a working day."""
LIFETIME_MAX_S: Final = 100 * 366 * 24 * 3600
RESTORED: Final = "RESTORED"
"""Why tokens of a backup are revoked in what is restored from it: nobody knows which were revoked since."""


class TokenStore(Protocol):
    """Where tokens are kept."""

    async def change(self, statement: str, values: Mapping[str, Any], said: Statement | None = None) -> bool:
        """Whether the statement changed anything; if it did, `said` is recorded in the same transaction."""


class Tokens(TokenReading):
    """The tokens of one ledger."""

    def __init__(self, store: TokenStore, reader: LedgerReader, clock: WallClock, ids: IdSource) -> None:
        super().__init__(reader, clock)
        self._store = store
        self._ids = ids

    async def make(
        self,
        owner: str,
        rights: Iterable[str],
        *,
        session_prefix: str | None = None,
        lifetime_s: float | None = None,
        actor: str | None = None,
    ) -> tuple[Token, str]:
        """A new token, and the text that its holder presents, which nobody can be told again."""
        now_us = self._clock.now_us()
        token_id, secret = f"token-{self._ids.writer_id()}", new_secret(self._ids)
        made = Token(
            token_id,
            check_name("owner", owner),
            check_rights(rights),
            None if session_prefix is None else check_id("session_prefix", session_prefix),
            now_us,
            _expiry(now_us, lifetime_s),
            None,
            hash_of(secret),
        )
        grants = ".".join(made.rights)
        facts = {"owner": made.owner, "session_prefix": made.session_prefix, "expires_us": made.expires_us}
        said = Statement(TokenCreated, {"token_id": token_id, "grants": grants, "actor": actor, **facts})
        keys = {"token_id": token_id, "secret_hash": made.secret_hash, "rights": grants, "created_us": now_us}
        await self._store.change(sql.MAKE, {**keys, **facts}, said)
        return made, bearer(token_id, secret)

    async def revoke(self, token_id: str, *, reason: str = "REVOKED", actor: str | None = None) -> bool:
        """Let the token open nothing any more, nor who signed in with it; False if that was so. `TokenNotFound`."""
        check_id("token_id", token_id)
        said = Statement(TokenRevoked, {"token_id": token_id, "reason": check_code("reason", reason), "actor": actor})
        if await self._store.change(sql.REVOKE, {"token_id": token_id, "now_us": self._clock.now_us()}, said):
            return True
        if await self.one(token_id) is None:
            raise TokenNotFound(token_id)
        return False

    async def revoke_all(self, reason: str) -> int:
        """Revoke every token that is not; how many."""
        return sum([await self.revoke(one.token_id, reason=reason) for one in await self.all() if not one.revoked_us])

    async def named(self, *, token_id: str | None = None, owner: str | None = None) -> Token:
        """The active token of that id, or the only one of that owner; `TokenNotFound`, `InvalidInput`."""
        found = [
            one
            for one in await self.all()
            if one.state(self._clock.now_us()) == "active"
            and (one.token_id == token_id if token_id is not None else one.owner == owner)
        ]
        if len(found) > 1:
            raise InvalidInput("owner", f"has {len(found)} tokens: name one by its id")
        if not found:
            raise TokenNotFound(f"{token_id or owner} that can be used")
        return found[0]

    async def link(self, token_id: str) -> str:
        """The code of a link to sign in with, good once and for `LOGIN_CODE_TTL_S`."""
        now_us, code = self._clock.now_us(), new_secret(self._ids)
        await self._store.change(sql.TIDY, {"now_us": now_us})
        until_us = now_us + LOGIN_CODE_TTL_S * 1_000_000
        values = {"code_hash": hash_of(code), "token_id": token_id, "until_us": until_us}
        await self._store.change(sql.LINK, values)
        return code

    async def enter(self, code: str) -> str | None:
        """The secret of a new session of `SESSION_TTL_S` for whoever comes first with the code; None for others."""
        now_us, secret = self._clock.now_us(), new_secret(self._ids)
        expires_us = now_us + SESSION_TTL_S * 1_000_000
        values = {"session_hash": hash_of(secret), "code_hash": hash_of(code), "expires_us": expires_us}
        return secret if await self._store.change(sql.ENTER, {**values, "now_us": now_us}) else None

    async def leave(self, secret: str) -> None:
        """End a session; there need not be one."""
        await self._store.change(sql.LEAVE, {"secret_hash": hash_of(secret)})


def _expiry(now_us: int, lifetime_s: float | None) -> int | None:
    if lifetime_s is None:
        return None
    if isinstance(lifetime_s, bool) or not 0 < lifetime_s <= LIFETIME_MAX_S:
        raise InvalidInput("lifetime_s", f"must be above 0 and at most {LIFETIME_MAX_S} seconds, not {lifetime_s!r}")
    return now_us + round(lifetime_s * 1_000_000)
