"""`tachograph verify-receipt`: whether a receipt shows its event to be in a log, offline."""

from __future__ import annotations

from pathlib import Path

import click

from ledger.audit.errors import InvalidCheckpoint, InvalidNote, InvalidProof
from ledger.audit.notes.proofs import MAX_PROOF_CHARS
from ledger.audit.signing.kept import read_keys
from ledger.audit.signing.receipts import Receipt
from ledger.cli.common import EXIT_NOT_FOUND, command, fail, json_option, one_line, print_json
from ledger.words.format import plural

WIDTH = 300
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("verify-receipt")
@click.argument("file", type=FILE)
@click.option("--key", "key_file", type=FILE, required=True, metavar="FILE", help="The public keys that you trust.")
@click.option("--origin", metavar="NAME", help="The log that it must be of.")
@json_option
@command
async def verify_receipt(file: Path, key_file: Path, origin: str | None, as_json: bool) -> None:
    """Check a receipt offline: that a key you trust signed a log with this event in it; exit code 1 if not."""
    keys = read_keys(key_file)
    with file.open("rb") as opened:
        text = opened.read(MAX_PROOF_CHARS + 1).decode("utf-8", "replace")
    try:
        receipt = Receipt.parse(text)
        checkpoint = receipt.verify(keys, origin=origin)
    except (InvalidProof, InvalidNote, InvalidCheckpoint) as error:
        fail(one_line(str(error), WIDTH), EXIT_NOT_FOUND)
    if as_json:
        said = {"session_id": receipt.session_id, "run_id": receipt.run_id, "seq": receipt.seq}
        print_json({**said, "link": receipt.link.hex(), "origin": checkpoint.origin, "size": checkpoint.size})
        return
    run = one_line(f"{receipt.session_id}/{receipt.run_id}", WIDTH)
    click.echo(f"link      {receipt.link.hex()}, said to be that of event {receipt.seq:,} of {run}")
    click.echo(
        f"log       event {receipt.proof.index + 1:,} of {plural(checkpoint.size, 'event')} of {checkpoint.origin}"
    )
    click.echo(
        "right     a key that you trust signed a log with this link in it; the run's events show that it is theirs"
    )
