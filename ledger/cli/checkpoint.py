"""`tachograph checkpoint`: sign what the log is now."""

from __future__ import annotations

from pathlib import Path

import click

from ledger.audit.signing.signing import Signing
from ledger.cli.common import command, db_option, json_option, open_existing, print_json, progress
from ledger.cli.key import anchor_option, key_option, key_path, require_new, write_new
from ledger.words.format import plural


@click.command()
@db_option
@key_option
@click.option("--origin", metavar="NAME", help="What the log is called; by default as the key.")
@anchor_option
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A new file to write it to.")
@json_option
@command
async def checkpoint(
    db: str, key_file: Path | None, origin: str | None, anchor: Path | None, output: Path | None, as_json: bool
) -> None:
    """Sign what the log is now; keep what is printed out of reach of whoever can write the ledger.

    Exit code 1 if the log is not what was signed before: then nothing is signed.
    """
    if output is not None:
        require_new(output)
    signing = Signing(key=key_path(key_file, db), origin=origin, anchor=anchor)
    with progress("Reading the log", as_json) as on_progress:
        async with await open_existing(db, signing=signing) as ledger:
            signed = await ledger.checkpoint(on_progress=on_progress)
    if output is not None:
        write_new(output, signed.note)
    said = signed.claim
    if as_json:
        print_json({"origin": said.origin, "size": said.size, "root": said.root.hex(), "note": signed.note})
    elif output is None:
        click.echo(signed.note, nl=False)
    else:
        click.echo(f"signed {plural(said.size, 'event')} of {said.origin} in {output}")
