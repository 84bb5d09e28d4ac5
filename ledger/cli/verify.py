"""`tachograph verify`: whether a ledger is what its events say."""

from __future__ import annotations

import click

from ledger.cli.common import EXIT_NOT_FOUND, command, db_option, json_option, print_json, progress
from ledger.verifying import VerifyReport
from ledger.verifying import verify as verify_ledger


@click.command()
@db_option
@json_option
@command
async def verify(db: str, as_json: bool) -> None:
    """Check every link, column, content and row against the events; exit code 1 if any is not as it should be."""
    with progress("verifying", as_json) as on_progress:
        report = await verify_ledger(db, on_progress)
    if as_json:
        print_json(report)
    else:
        say(report)
    if not report.is_right:
        raise click.exceptions.Exit(EXIT_NOT_FOUND)


def say(report: VerifyReport) -> None:
    """The report as text, which never says more than was looked at (SPEC E9)."""
    click.echo(
        f"ledger {report.ledger_id}: {report.event_count:,} events of {report.stream_count:,} streams,"
        f" {report.content_count:,} contents, {report.row_count:,} rows"
    )
    for finding in report.findings:
        click.echo(str(finding))
    if report.finding_count > len(report.findings):
        click.echo(f"and {report.finding_count - len(report.findings):,} more")
    if report.is_right:
        click.echo("links, columns, contents and rows agree")
    click.echo(f"tail not anchored: nothing outside the ledger vouches for its {report.event_count:,} events")
