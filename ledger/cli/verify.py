"""`tachograph verify`: whether a ledger is what its events say."""

from __future__ import annotations

from pathlib import Path

import click

from ledger.audit.notes.checkpoint import Checkpoint
from ledger.audit.signing.kept import read_anchor, read_keys, read_note
from ledger.cli.common import (
    EXIT_NOT_FOUND,
    command,
    db_option,
    json_option,
    keys_of,
    one_line,
    print_json,
    progress,
)
from ledger.verifying import VerifyReport, cores
from ledger.verifying import verify as verify_ledger
from ledger.verifying import verify_run as verify_one
from ledger.words.format import instant, plural

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
WIDTH = 400
"""Of a finding's line: what somebody wrote into the database is no reason to fill the terminal."""


@click.command()
@click.argument("run", required=False, metavar="[SESSION/RUN]")
@click.option("--jobs", type=click.IntRange(1, 64), default=cores, show_default="one for each core", help="Processes.")
@click.option("--checkpoint", type=FILE, help="A checkpoint kept outside the ledger, made by `tachograph checkpoint`.")
@click.option("--anchor", type=FILE, help="The file that checkpoints were added to.")
@click.option("--origin", metavar="NAME", help="Of the anchor only what was signed under this name.")
@click.option("--key", type=FILE, help="The public keys that they are checked with, from `tachograph key export`.")
@db_option
@json_option
@command
async def verify(
    run: str | None,
    jobs: int,
    checkpoint: Path | None,
    anchor: Path | None,
    origin: str | None,
    key: Path | None,
    db: str,
    as_json: bool,
) -> None:
    """Check every link, column, content, row and rule of a ledger, or of one run, against its events.

    Exit code 1 if anything is not as it should be, 2 if that could not be found out.
    """
    trusted = _trusted(run, checkpoint, anchor, origin, key)
    with progress("verifying", as_json) as on_progress:
        if run is None:
            report = await verify_ledger(db, on_progress, jobs=jobs, trusted=trusted)
        else:
            report = await verify_one(db, *keys_of(run))
    if as_json:
        print_json(report)
    else:
        say(report, of=run)
    if not report.is_right:
        raise click.exceptions.Exit(EXIT_NOT_FOUND)


def _trusted(
    run: str | None, checkpoint: Path | None, anchor: Path | None, origin: str | None, key: Path | None
) -> list[Checkpoint]:
    """What is believed of the log, as it was kept outside."""
    if origin is not None and anchor is None:
        raise click.UsageError("--origin says which checkpoints of --anchor are meant")
    if checkpoint is None and anchor is None:
        return []
    if run is not None:
        raise click.UsageError("a checkpoint is of the whole ledger, not of one run")
    if key is None:
        raise click.UsageError("say with --key whose signature it must bear")
    keys = read_keys(key)
    kept = [] if checkpoint is None else [read_note(checkpoint).open(keys)]
    return kept if anchor is None else [*kept, *read_anchor(anchor, keys, origin)]


def say(report: VerifyReport, *, of: str | None = None) -> None:
    """The report as text, which never says more than was looked at (SPEC E9)."""
    about = f"ledger {report.ledger_id}: " if of is None else f"ledger {report.ledger_id}, only {one_line(of, 300)}: "
    click.echo(
        f"{about}{plural(report.event_count, 'event')} of {plural(report.stream_count, 'stream')},"
        f" {plural(report.content_count, 'content')}, {plural(report.row_count, 'row')}"
    )
    for finding in report.findings:
        click.echo(one_line(str(finding), WIDTH))
    if report.finding_count > len(report.findings):
        click.echo(f"and {report.finding_count - len(report.findings):,} more")
    if report.is_right:
        click.echo("links, columns, contents, rows and the course of every run agree")
    else:
        click.echo(f"NOT as it should be: {plural(report.finding_count, 'finding')}")
    say_outdated(report)
    click.echo(_tail(report))


def say_outdated(report: VerifyReport) -> None:
    """How many runs wait for a rebuild."""
    if report.runs_outdated:
        verb = "is" if report.runs_outdated == 1 else "are"
        click.echo(
            f"{plural(report.runs_outdated, 'run')} {verb} folded by an earlier version;"
            " `tachograph rebuild` makes them anew"
        )


def _tail(report: VerifyReport) -> str:
    tail = report.tail
    anchored = plural(report.anchored_count, "event")
    under = f"{anchored} under a checkpoint kept outside are those that were signed"
    if not report.is_right:
        # Of an event the tree has its link: what else is wrong with it was said before.
        under = f"the links of {anchored} under a checkpoint kept outside are those that were signed"
    if report.anchored_count and not tail.event_count:
        return f"{under}, and there are no others"
    if report.anchored_count:
        click.echo(under)
    if not tail.event_count:
        return "tail not anchored: there are no events yet"
    said = f"tail not anchored: nothing outside the ledger vouches for {plural(tail.event_count, 'event')}"
    if tail.first_us is None or tail.last_us is None:
        return f"{said}, and when they were recorded cannot be told"
    return f"{said}, recorded from {instant(tail.first_us)} to {instant(tail.last_us)}"
