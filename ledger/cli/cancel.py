"""`tachograph cancel`: asks a run to stop, whichever process it runs in."""

from __future__ import annotations

import click

from harness.errors import AlreadyTerminated
from harness.events import REQUESTABLE
from ledger.cli.common import EXIT_NOT_FOUND, command, db_option, fail, json_option, keys_of, open_existing, print_json


@click.command()
@click.argument("run", metavar="SESSION/RUN")
@click.option("--reason", type=click.Choice(sorted(REQUESTABLE)), default="USER_REQUESTED", show_default=True)
@click.option("--actor", help="Who wants it: a pseudonymous code, since it can never be erased.")
@db_option
@json_option
@command
async def cancel(run: str, reason: str, actor: str | None, db: str, as_json: bool) -> None:
    """Ask that a run be cancelled; exit code 1 if it has ended. Its process hears within a second, and ends it."""
    session_id, run_id = keys_of(run)
    async with await open_existing(db) as ledger:
        try:
            is_new = await ledger.cancel(session_id, run_id, reason=reason, actor=actor)
        except AlreadyTerminated as error:
            fail(str(error), EXIT_NOT_FOUND)
    if as_json:
        print_json({"session_id": session_id, "run_id": run_id, "asked_before": not is_new})
    else:
        click.echo(f"{'asked' if is_new else 'was asked before'}: {session_id}/{run_id} is to stop")
