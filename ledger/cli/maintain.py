"""`tachograph migrate` and `tachograph rebuild`: what brings a ledger up to date."""

from __future__ import annotations

import asyncio

import click

from ledger.cli.common import EXIT_NOT_FOUND, command, db_option, json_option, open_existing, print_json
from ledger.migrate import ensure_current, lock_of
from ledger.store.place import path_of
from ledger.store.probe import identify


@click.command()
@db_option
@click.option("--create", is_flag=True, help="Make the ledger if there is none.")
@json_option
@command
async def migrate(db: str, create: bool, as_json: bool) -> None:
    """Bring a ledger's schema up to date."""
    path = path_of(db)
    if not create:
        identify(path)
    lock = lock_of(path)
    try:
        before, identity = await asyncio.to_thread(ensure_current, path, lock)
    finally:
        lock.close()
    if as_json:
        print_json({"ledger_id": identity.ledger_id, "before": before, "revision": identity.revision})
    elif before == identity.revision:
        click.echo(f"{path} is up to date (schema {identity.revision})")
    else:
        click.echo(f"{path} is now at schema {identity.revision} (before: {before or 'nothing'})")


@click.command()
@db_option
@json_option
@command
async def rebuild(db: str, as_json: bool) -> None:
    """Make every row anew from events; exit code 1 if any was not as it should be."""
    async with await open_existing(db) as ledger:
        report = await ledger.rebuild()
    if as_json:
        print_json(report)
    else:
        click.echo(f"{report.run_count} runs, {report.session_count} sessions, {report.row_count} rows")
        for run_id in report.runs_changed:
            click.echo(f"changed: run {run_id}")
        for session_id in report.sessions_changed:
            click.echo(f"changed: session {session_id}")
        for run_id in report.runs_unreadable:
            click.echo(f"cannot be read: run {run_id}")
        for session_id in report.sessions_unreadable:
            click.echo(f"cannot be read: session {session_id}")
        if report.stray_count:
            click.echo(f"removed: {report.stray_count} rows of unknown runs or sessions")
    if not report.is_clean:
        raise click.exceptions.Exit(EXIT_NOT_FOUND)
