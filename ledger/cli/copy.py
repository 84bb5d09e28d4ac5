"""`tachograph copy`: a ledger to another place, where it goes on."""

from __future__ import annotations

import click

from ledger.cli.common import command, json_option, one_line, print_json, progress
from ledger.cli.verify import say_outdated
from ledger.copies.copying import copy as copy_ledger

NAMES_WIDTH = 300


@click.command()
@click.option("--from", "source", required=True, metavar="URL", help="The ledger: a file, or PostgreSQL.")
@click.option("--to", "target", required=True, metavar="URL", help="Where there is none yet: a file, or PostgreSQL.")
@click.option("--keep", is_flag=True, help="Do not mark the old one as moved. See to it that only one goes on.")
@json_option
@command
async def copy(source: str, target: str, keep: bool, as_json: bool) -> None:
    """Copy a ledger that nobody has open to another file or database, where it goes on; verified, or not at all."""
    with progress("copying", as_json) as on_progress:
        report = await copy_ledger(source, target, keeps_source=keep, on_progress=on_progress)
    if as_json:
        print_json(report)
        return
    click.echo(f"{report.target}: ledger {report.ledger_id}, {report.verified.event_count:,} events, verified")
    say_outdated(report.verified)
    if report.left_behind:
        names = one_line(", ".join(report.left_behind), NAMES_WIDTH)
        click.echo(f"not copied, as they are not the ledger's: tables {names}; places of followers that fill them were")
    if report.is_moved:
        click.echo(f"{report.source} is marked as moved: it can be read, and no more written")
    else:
        click.echo(f"{report.source} was kept as it is: see to it that only one of them goes on")
