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
    print_json,
    progress,
)
from ledger.verifying import VerifyReport, cores
from ledger.verifying import verify as verify_ledger
from ledger.verifying import verify_run as verify_one
from ledger.verifying.telling import lines_of, outdated_lines

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


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
    """The report as text."""
    for line in lines_of(report, of=of):
        click.echo(line)


def say_outdated(report: VerifyReport) -> None:
    """How many runs wait for a rebuild."""
    for line in outdated_lines(report):
        click.echo(line)
