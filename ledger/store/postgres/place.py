"""Which database a ledger's address means, and connections to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from ledger.errors import UnsupportedUrl

if TYPE_CHECKING:
    import asyncpg

SCHEMA = re.compile("[A-Za-z0-9_]{1,63}")
CONNECT_TIMEOUT_S = 10.0
STATEMENT_TIMEOUT_S = 30.0
"""A statement that takes longer is given up by the server."""
LOCK_TIMEOUT_S = 10.0
"""So is one that waits longer for others."""
IDLE_TIMEOUT_S = 60.0
"""A transaction in which nothing happens for so long is ended by the server."""
ANSWER_TIMEOUT_S = 40.0
"""A server that says nothing for so long is taken for lost."""

SETTINGS = {
    "application_name": "tachograph",
    "statement_timeout": f"{STATEMENT_TIMEOUT_S:.0f}s",
    "lock_timeout": f"{LOCK_TIMEOUT_S:.0f}s",
    "idle_in_transaction_session_timeout": f"{IDLE_TIMEOUT_S:.0f}s",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    # The same few statements over and over, each of a few rows. Their plans are made once, perhaps when the tables
    # were empty, and must be right when these have grown.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}


@dataclass(frozen=True, slots=True)
class PostgresPlace:
    """A ledger's schema in a database."""

    dsn: str
    """As the driver takes it; it may hold a password."""
    schema: str | None
    """The schema that the address names; None for the one that the user's search path begins with."""
    name: str
    """The address without its password."""

    def __str__(self) -> str:
        return self.name

    async def connect(
        self, settings: Mapping[str, str] = MappingProxyType({}), *, answer_timeout_s: float | None = ANSWER_TIMEOUT_S
    ) -> asyncpg.Connection[Any]:
        """A connection of its own; raises what the driver raises."""
        import asyncpg

        path = {} if self.schema is None else {"search_path": f'"{self.schema}"'}
        return await asyncpg.connect(
            self.dsn,
            timeout=CONNECT_TIMEOUT_S,
            command_timeout=answer_timeout_s,
            max_cached_statement_lifetime=0,
            server_settings=SETTINGS | path | dict(settings),
        )


def place_at(url: str) -> PostgresPlace:
    """The database that `postgresql://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME` means."""
    try:
        parts = urlsplit(url)
        has_port = parts.port is not None
    except ValueError as error:
        raise UnsupportedUrl("is no address of a PostgreSQL database") from error
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    schema = options.pop("schema", None)
    if "\0" in url or (schema is not None and not SCHEMA.fullmatch(schema)) or "password" in options or parts.fragment:
        raise UnsupportedUrl("is no address of a PostgreSQL database")
    dsn = urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(options), ""))
    user = f"{parts.username}@" if parts.username else ""
    port = f":{parts.port}" if has_port else ""
    name = f"postgresql://{user}{parts.hostname or ''}{port}{parts.path}"
    return PostgresPlace(dsn, schema, name if schema is None else f"{name}?schema={schema}")
