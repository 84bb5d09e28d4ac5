"""`tachograph export`: a run, or a period, as one file that can be checked anywhere."""

from __future__ import annotations

from pathlib import Path

import click

from ledger.audit.exporting.exporting import Exported, Vouched, export_period, export_run
from ledger.audit.notes.notes import VerifierKey
from ledger.audit.signing.kept import read_keys, read_note
from ledger.audit.signing.keyring import default_key_path, public_keys
from ledger.audit.signing.signing import Signing
from ledger.cli.common import command, db_option, json_option, keys_of, open_existing, print_json, progress
from ledger.cli.key import anchor_option, key_option
from ledger.cli.verify_bundle import as_dictionary, file_argument, lines_of
from ledger.store.place import is_postgres, path_of
from ledger.words.times import moment_us


@click.command()
@click.argument("run", metavar="[SESSION/RUN]", required=False)
@click.option("--from", "first", metavar="TIME", help="Instead of a run: all events from this time on,")
@click.option("--to", "end", metavar="TIME", help="and before this one.")
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The new file.")
@click.option("--without-content", is_flag=True, help="Leave out what was asked, answered, given and returned.")
@key_option
@anchor_option
@click.option("--public-key", type=file_argument, metavar="FILE", help="Sign nothing, and take what these have signed.")
@click.option("--origin", metavar="NAME", help="The log, where the keys have signed several.")
@click.option("--checkpoint", "kept_file", type=file_argument, metavar="FILE", help="One that the receiver has kept.")
@db_option
@json_option
@command
async def export(
    run: str | None,
    first: str | None,
    end: str | None,
    output: Path,
    without_content: bool,
    key_file: Path | None,
    anchor: Path | None,
    public_key: Path | None,
    origin: str | None,
    kept_file: Path | None,
    db: str,
    as_json: bool,
) -> None:
    """Export one run, or all of a period, with the proof that the log holds it; `verify-bundle` checks it anywhere.

    With a private key a fresh checkpoint is signed first. TIME is a day in UTC, such as 2026-12-01, or an RFC 3339 time
    with its offset.
    """
    if (run is None) == (first is None or end is None) or (run is not None and (first or end)):
        raise click.UsageError("name a run as SESSION/RUN, or a period with --from and --to")
    ids = None if run is None else keys_of(run)
    times = None if ids is not None else (moment_us("from", first or ""), moment_us("to", end or ""))
    kept = None if kept_file is None else read_note(kept_file)
    with progress("exporting", as_json) as on_progress:
        keys, origin = await _keys(db, key_file, anchor, public_key, origin)
        vouched = Vouched(keys=keys, origin=origin, kept=kept)
        if ids is not None:
            made = await export_run(
                db, output, *ids, with_content=not without_content, vouched=vouched, on_progress=on_progress
            )
        else:
            assert times is not None
            made = await export_period(db, output, *times, vouched=vouched, on_progress=on_progress)
    _say(made, keys, as_json)


async def _keys(
    db: str, key_file: Path | None, anchor: Path | None, public_key: Path | None, origin: str | None
) -> tuple[list[VerifierKey], str | None]:
    """The public keys to take along and the log's name, once there is a checkpoint of now, where the key is at hand."""
    if public_key is not None:
        return read_keys(public_key), origin
    path = key_file
    if path is None:
        if is_postgres(db) or not default_key_path(path_of(db)).exists():
            return [], origin
        path = default_key_path(path_of(db))
    keys = public_keys(path)
    async with await open_existing(db, signing=Signing(key=path, origin=origin, anchor=anchor)) as ledger:
        signed = await ledger.checkpoint()
    # It may be called otherwise than the key, since it was restored.
    return keys, signed.claim.origin


def _say(made: Exported, keys: list[VerifierKey], as_json: bool) -> None:
    if as_json:
        print_json({"file": str(made.path), "size_bytes": made.size_bytes, **as_dictionary(made.verified)})
        return
    click.echo(f"{made.path}: {made.size_bytes:,} bytes, and this is what checking it says")
    click.echo("\n".join(lines_of(made.verified, with_runs=False)))
    if not keys:
        click.echo("No key was given, and none is beside the ledger: a checkpoint needs one (`tachograph key create`).")
