"""Looking up tokens, in one moment of the ledger; every lookup is by a key, and what is found is proven."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from harness.clock import WallClock
from ledger.reading.reader import LedgerReader
from ledger.schema import sign_in, token
from ledger.tokens.records import Token
from ledger.tokens.secrets import hash_of, is_secret, parts_of

COLUMNS = (
    token.c.token_id,
    token.c.owner,
    token.c.rights,
    token.c.session_prefix,
    token.c.created_us,
    token.c.expires_us,
    token.c.revoked_us,
    token.c.secret_hash,
)
ALL = sa.select(*COLUMNS).order_by(token.c.created_us, token.c.token_id)
ONE = sa.select(*COLUMNS).where(token.c.token_id == sa.bindparam("token_id"))
ANY = sa.select(token.c.token_id).limit(1)
OF_SESSION = (
    sa.select(*COLUMNS, sign_in.c.secret_hash)
    .join_from(sign_in, token, sign_in.c.token_id == token.c.token_id)
    .where(
        sign_in.c.secret_hash == sa.bindparam("secret_hash"),
        sign_in.c.kind == "session",
        sign_in.c.expires_us > sa.bindparam("now_us"),
    )
)


class TokenReading:
    """A `ledger.tokens.records.TokenFinder` over a reader."""

    def __init__(self, reader: LedgerReader, clock: WallClock) -> None:
        self._reader = reader
        self._clock = clock
        self._were_any = False

    async def all(self) -> list[Token]:
        """Every token that was made, the oldest first."""
        return [_token(row) for row in await self._rows(ALL)]

    async def one(self, token_id: str) -> Token | None:
        """The token of that id, whatever its state."""
        return next((_token(row) for row in await self._rows(ONE, token_id=token_id)), None)

    async def are_any(self) -> bool:
        """As `TokenFinder`; whatever else is put into the ledger's place, to whoever has heard of one there was one."""
        self._were_any = self._were_any or bool(await self._rows(ANY))
        return self._were_any

    async def by_bearer(self, presented: str) -> Token | None:
        """As `TokenFinder`."""
        parts = parts_of(presented)
        if parts is None:
            return None
        token_id, secret = parts
        found = await self.one(token_id)
        return found if found is not None and is_secret(secret, found.secret_hash) and self._is_active(found) else None

    async def by_session(self, secret: str) -> Token | None:
        """As `TokenFinder`."""
        rows = await self._rows(OF_SESSION, secret_hash=hash_of(secret), now_us=self._clock.now_us())
        for *columns, kept in rows:
            found = _token(columns)
            if is_secret(secret, bytes(kept)) and self._is_active(found):
                return found
        return None

    def _is_active(self, found: Token) -> bool:
        return found.state(self._clock.now_us()) == "active"

    async def _rows(self, statement: sa.Select[Any], **values: Any) -> list[Any]:
        return await self._reader.in_one_moment(lambda connection, _: list(connection.execute(statement, values)))


def _token(columns: Any) -> Token:
    token_id, owner, rights, session_prefix, created_us, expires_us, revoked_us, secret_hash = columns
    times = (created_us, expires_us, revoked_us)
    return Token(token_id, owner, tuple(rights.split(".")), session_prefix, *times, bytes(secret_hash))
