"""`tachograph backup`, `restore`, `adopt` and `erasures`: copies of a ledger, and what must not come back with them."""

from __future__ import annotations

from pathlib import Path

import click

from ledger.cli.common import EXIT_UNUSABLE, command, db_option, fail, json_option, print_json, progress
from ledger.cli.verify import say_outdated
from ledger.copies.adopting import adopt as adopt_restored
from ledger.copies.backup import RestoreReport, back_up
from ledger.copies.backup import restore as restore_backup
from ledger.erasing.erasures import ErasureList, lines_of
from ledger.reading.reader import LedgerReader
from ledger.words.format import plural


@click.command()
@click.argument("dest", type=click.Path(path_type=Path))
@click.option("--verify", "is_verified", is_flag=True, help="Verify the backup before it is put in place.")
@db_option
@json_option
@command
async def backup(dest: Path, is_verified: bool, db: str, as_json: bool) -> None:
    """Copy a ledger to DEST, as it is in one moment, while others may be writing it."""
    with progress("copying", as_json) as on_progress:
        report = await back_up(db, dest, is_verified=is_verified, on_progress=on_progress)
    if as_json:
        print_json(report)
        return
    click.echo(f"{report.path}: {report.backup_id} of ledger {report.ledger_id}, {report.size_bytes:,} bytes")
    if report.verified is not None:
        click.echo(f"verified: {report.verified.event_count:,} events, {report.verified.row_count:,} rows")
        say_outdated(report.verified)


@click.command()
@click.argument("backup", type=click.Path(path_type=Path))
@click.argument("dest", type=click.Path(path_type=Path))
@click.option("--erasures", type=click.Path(path_type=Path), help="A list made by `tachograph erasures`.")
@json_option
@command
async def restore(backup: Path, dest: Path, erasures: Path | None, as_json: bool) -> None:
    """Make a ledger at DEST of a BACKUP, verified; what the list says was erased since is erased again."""
    with progress("restoring", as_json) as on_progress:
        given = None if erasures is None else ErasureList(erasures)
        report = await restore_backup(backup, dest, erasures=given, on_progress=on_progress)
    _say_restored(report, is_list_given=erasures is not None, as_json=as_json)


def _say_restored(report: RestoreReport, *, is_list_given: bool, as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    click.echo(f"{report.path}: ledger {report.ledger_id}, {report.verified.event_count:,} events, verified")
    say_outdated(report.verified)
    click.echo(f"its log goes on by itself from here on, and says so ({report.restore_id})")
    if not is_list_given:
        click.echo("no list of erasures was given: what was erased since the backup is there again")
    else:
        click.echo(f"erased again: {report.erasures_repeated:,} decisions that the backup did not know")


@click.command()
@click.option("--erasures", type=click.Path(path_type=Path), help="A list made by `tachograph erasures`.")
@db_option
@json_option
@command
async def adopt(erasures: Path | None, db: str, as_json: bool) -> None:
    """Let a PostgreSQL ledger go on where pg_restore put it, verified; the other one must go no further."""
    with progress("verifying", as_json) as on_progress:
        given = None if erasures is None else ErasureList(erasures)
        report = await adopt_restored(db, erasures=given, on_progress=on_progress)
    _say_restored(report, is_list_given=erasures is not None, as_json=as_json)


@click.command()
@click.option("-o", "output", type=click.Path(path_type=Path), required=True, help="Where to write the list.")
@db_option
@command
async def erasures(output: Path, db: str) -> None:
    """List what was erased, for `restore`; keep the list apart from the ledger and its backups."""
    count = 0
    async with await LedgerReader.open(db) as reader:
        ledger_id = await reader.ledger_id()
        try:
            with output.open("xb") as file:
                async for line in lines_of(reader, ledger_id):
                    file.write(line)
                    count += b'"erasure_id"' in line and b'"type"' in line
        except OSError as error:
            fail(f"{output} cannot be written ({error.strerror})", EXIT_UNUSABLE)
    click.echo(f"{output}: {plural(count, 'erasure')}")
