"""`tachograph token`: who may look at the ledger over the network, and do what."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlencode

import click

from harness.clock import SystemWallClock
from ledger.cli.common import command, db_option, json_option, open_existing, print_json, table
from ledger.reading.reader import LedgerReader
from ledger.tokens.reading import TokenReading
from ledger.tokens.records import RIGHTS, Token
from ledger.tokens.tokens import LOGIN_CODE_TTL_S
from ledger.words.format import instant

UNIT_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
VIEWER: Final = "http://127.0.0.1:8321"

actor_option = click.option("--actor", help="Who does it; kept for ever, so a pseudonym.")


class Span(click.ParamType[int]):
    """A span of time such as `30d`, in seconds."""

    name = "span"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """`12h` as 43200."""
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"([0-9]{1,6})([smhd])", str(value))
        if match is None:
            self.fail("must be a number with a unit: 45m, 12h or 30d", param, ctx)
        return int(match[1]) * UNIT_S[match[2]]


@click.group()
def token() -> None:
    """Who may look at the ledger over the network, and do what. From the first token on everybody needs one."""


@token.command()
@click.option("--owner", required=True, help="Whose it is; kept for ever, so a pseudonym.")
@click.option(
    "--right", "rights", multiple=True, required=True, type=click.Choice(RIGHTS), help="What it is good for; repeat it."
)
@click.option("--sessions", metavar="PREFIX", help="Only sessions whose ids begin so.")
@click.option("--expires-in", type=Span(), metavar="SPAN", help="How long it is good, such as 30d; else for ever.")
@actor_option
@db_option
@json_option
@command
async def create(
    owner: str,
    rights: tuple[str, ...],
    sessions: str | None,
    expires_in: int | None,
    actor: str | None,
    db: str,
    as_json: bool,
) -> None:
    """Make a token, and print it: this once, since only its hash is kept."""
    async with await open_existing(db) as ledger:
        made, bearer = await ledger.tokens.make(
            owner, rights, session_prefix=sessions, lifetime_s=expires_in, actor=actor
        )
    if as_json:
        print_json({**_facts(made), "token": bearer})
        return
    click.echo(f"made {made.token_id} for {made.owner}: {', '.join(made.rights)}", err=True)
    click.echo("Keep it now; it is not shown again. Send it as `Authorization: Bearer ...`.", err=True)
    click.echo(bearer)


@token.command("list")
@db_option
@json_option
@command
async def list_tokens(db: str, as_json: bool) -> None:
    """List every token that was made, the oldest first."""
    clock = SystemWallClock()
    async with await LedgerReader.open(db) as reader:
        made = await TokenReading(reader, clock).all()
    now_us = clock.now_us()
    if as_json:
        print_json([{**_facts(one), "state": one.state(now_us)} for one in made])
        return
    rows = [
        [one.token_id, one.state(now_us), one.owner, ",".join(one.rights), one.session_prefix or "all", _until(one)]
        for one in made
    ]
    heading = ["TOKEN", "STATE", "OWNER", "RIGHTS", "SESSIONS", "UNTIL"]
    click.echo(table([heading, *rows]) if rows else "no tokens: whoever reaches the viewer may do everything")


@token.command()
@click.argument("token_id")
@click.option("--reason", default="REVOKED", show_default=True, help="Why, as a code.")
@actor_option
@db_option
@json_option
@command
async def revoke(token_id: str, reason: str, actor: str | None, db: str, as_json: bool) -> None:
    """Let the token TOKEN_ID open nothing any more, nor who signed in with it."""
    async with await open_existing(db) as ledger:
        is_new = await ledger.tokens.revoke(token_id, reason=reason, actor=actor)
    if as_json:
        print_json({"token_id": token_id, "is_new": is_new})
    else:
        click.echo(f"{token_id} {'is' if is_new else 'was'} revoked")


@token.command()
@click.option("--token-id", help="The token to sign in with.")
@click.option("--owner", help="The same by its owner, who has no other.")
@click.option("--url", default=VIEWER, show_default=True, help="Where the viewer is served.")
@db_option
@json_option
@command
async def link(token_id: str | None, owner: str | None, url: str, db: str, as_json: bool) -> None:
    """Print a link that signs a browser in, once and soon."""
    if (token_id is None) == (owner is None):
        raise click.UsageError("name the token by --token-id or by --owner")
    async with await open_existing(db) as ledger:
        found = await ledger.tokens.named(token_id=token_id, owner=owner)
        code = await ledger.tokens.link(found.token_id)
    address = f"{url.rstrip('/')}/login?{urlencode({'code': code})}"
    if as_json:
        print_json({"token_id": found.token_id, "owner": found.owner, "url": address, "expires_in_s": LOGIN_CODE_TTL_S})
        return
    click.echo(f"signs in {found.owner}, once, within {LOGIN_CODE_TTL_S // 60} minutes:", err=True)
    click.echo(address)


def _facts(made: Token) -> dict[str, object]:
    return {
        "token_id": made.token_id,
        "owner": made.owner,
        "rights": made.rights,
        "session_prefix": made.session_prefix,
        "created_us": made.created_us,
        "expires_us": made.expires_us,
        "revoked_us": made.revoked_us,
    }


def _until(made: Token) -> str:
    return "for ever" if made.expires_us is None else instant(made.expires_us)
