"""`tachograph migrate` and `tachograph rebuild`: what brings a ledger up to date."""

from __future__ import annotations

import asyncio

import click

from ledger.cli.common import EXIT_NOT_FOUND, command, db_option, json_option, open_existing, print_json
from ledger.errors import LedgerMissing
from ledger.migrate import ensure_current, lock_of
from ledger.store.identity import HEAD_REVISION, Identity
from ledger.store.place import is_postgres, path_of
from ledger.store.probe import identify


@click.command()
@db_option
@click.option("--create", is_flag=True, help="Make the ledger if there is none.")
@click.option("--check", is_flag=True, help="Change nothing; exit code 1 unless the schema is up to date.")
@click.option("--writer", metavar="ROLE", help="PostgreSQL: give this role the rights of a program, and no others.")
@json_option
@command
async def migrate(db: str, create: bool, check: bool, writer: str | None, as_json: bool) -> None:
    """Bring a ledger's schema up to date."""
    before, identity = await _migrate(db, create=create, check=check, writer=writer)
    name = db_name(db)
    if as_json:
        print_json({"ledger_id": identity.ledger_id, "before": before, "revision": identity.revision})
    elif check and identity.revision != HEAD_REVISION:
        click.echo(f"{name} is at schema {identity.revision}, and {HEAD_REVISION} is needed")
    elif before == identity.revision:
        click.echo(f"{name} is up to date (schema {identity.revision})")
    else:
        click.echo(f"{name} is now at schema {identity.revision} (before: {before or 'nothing'})")
    if identity.revision != HEAD_REVISION:
        raise click.exceptions.Exit(EXIT_NOT_FOUND)


async def _migrate(db: str, *, create: bool, check: bool, writer: str | None) -> tuple[str | None, Identity]:
    """What the schema was, and what it is now."""
    if is_postgres(db):
        return await _migrate_database(db, create=create, check=check, writer=writer)
    if writer is not None:
        raise click.UsageError("a file has no roles: --writer is for PostgreSQL")
    path = path_of(db)
    if check or not create:
        identity = identify(path)
        if check:
            return identity.revision, identity
    lock = lock_of(path)
    try:
        return await asyncio.to_thread(ensure_current, path, lock)
    finally:
        lock.close()


async def _migrate_database(db: str, *, create: bool, check: bool, writer: str | None) -> tuple[str | None, Identity]:
    # An engine is imported only where it is used: its driver may not be installed.
    from ledger.store.postgres import migrating, probe, roles
    from ledger.store.postgres.place import place_at

    place = place_at(db)
    if check or not create:
        identity = await probe.identify(place)
        if identity is None:
            raise LedgerMissing(place)
        if check:
            return identity.revision, identity
    migrated = await migrating.ensure_current(place)
    if writer is not None:
        await roles.grant_writer(place, writer)
    return migrated


def db_name(db: str) -> str:
    """The address as it may be shown: without a password."""
    if not is_postgres(db):
        return str(path_of(db))
    from ledger.store.postgres.place import place_at

    return str(place_at(db))


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
        if report.texts_changed:
            click.echo(f"the search index had other words than the contents of {report.texts_changed} runs")
        for run_id in report.runs_unreadable:
            click.echo(f"cannot be read: run {run_id}")
        for session_id in report.sessions_unreadable:
            click.echo(f"cannot be read: session {session_id}")
        if report.stray_count:
            click.echo(f"removed: {report.stray_count} rows of unknown runs or sessions")
    if not report.is_clean:
        raise click.exceptions.Exit(EXIT_NOT_FOUND)
