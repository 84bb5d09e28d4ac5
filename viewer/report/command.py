"""`tachograph report`: a period on paper, and as a sheet."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click

from harness.clock import SystemWallClock
from harness.errors import InvalidInput
from ledger.audit.report import Report, Sample, Sheet, Wanted, read_report
from ledger.audit.report.sampling import SAMPLE_MAX
from ledger.cli.common import command, db_option, json_option, plain, print_json, progress
from ledger.reading.reader import LedgerReader
from ledger.words.format import count, plural
from viewer.cli import NotTried
from viewer.report.page import render
from viewer.report.zones import Zone


@click.command()
@click.option("--from", "first", required=True, metavar="TIME", help="Runs that started at this time or later,")
@click.option("--to", "end", required=True, metavar="TIME", help="and before this one.")
@click.option("--agent", metavar="NAME[@VERSION]", help="Only the runs of this agent.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="The HTML file to print.")
@click.option("--csv", "csv_file", type=click.Path(dir_okay=False, path_type=Path), help="Every run on a line.")
@click.option(
    "--zone", default=None, metavar="NAME", help="For local times, such as Europe/Berlin.  [env: TZ; else UTC]"
)
@click.option(
    "--sample", "size", type=click.IntRange(0, SAMPLE_MAX), default=20, show_default=True, help="Runs to draw."
)
@click.option("--seed", default="1", show_default=True, metavar="TEXT", help="What the sample is drawn by.")
@db_option
@json_option
@command
async def report(
    first: str,
    end: str,
    agent: str | None,
    output: Path | None,
    csv_file: Path | None,
    zone: str | None,
    size: int,
    seed: str,
    db: str,
    as_json: bool,
) -> None:
    """Report on the runs that started in a period: one file to print, and every run as CSV.

    TIME is a day, such as 2026-12-01 (its beginning, in --zone), or an RFC 3339 time with its offset.
    """
    where = _zone(zone)
    name, _, version = (agent or "").partition("@")
    wanted = Wanted(where.moment("from", first), where.moment("to", end), name or None, version or None)
    if wanted.to_us <= wanted.from_us:
        raise InvalidInput("to", "must be later than from")
    if not seed.isascii() or len(seed) > 128:
        raise InvalidInput("seed", "must be at most 128 characters of ASCII")
    if output is None and csv_file is None and not as_json:
        raise click.UsageError("say where to: -o FILE, --csv FILE or --json")
    async with await LedgerReader.open(db) as reader:
        with _replacing(csv_file) as sheet_file, progress("reading runs", as_json) as on_progress:
            now_us = SystemWallClock().now_us()
            found = await read_report(reader, wanted, Sample(size, seed), Sheet(sheet_file), now_us, on_progress)
    if output is not None:
        with _replacing(output) as page:
            assert page is not None, "it has a name"
            page.write(render(found, where).encode())
    if as_json:
        print_json({"digest": found.digest, "report": plain(found)})
    else:
        _say(found, output, csv_file)


def _zone(name: str | None) -> Zone:
    if name is not None:
        return Zone.named(name)
    try:
        return Zone.named(os.environ.get("TZ") or "UTC")
    except InvalidInput:
        return Zone.named("UTC")  # TZ may be in a form of its own, such as CET-1


def _say(found: Report, output: Path | None, csv_file: Path | None) -> None:
    click.echo(f"{plural(found.run_count, 'run')}, {count(found.open_count)} still open")
    if output is not None:
        click.echo(f"{output}: digest {found.digest}")
    if csv_file is not None:
        click.echo(f"{csv_file}: SHA-256 {found.sheet_digest}")


@contextlib.contextmanager
def _replacing(path: Path | None) -> Iterator[BinaryIO | None]:
    """A file that takes the place of `path` once it is whole, and otherwise leaves nothing."""
    if path is None:
        yield None
        return
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise NotTried(f"{path} cannot be written ({error.strerror})") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
