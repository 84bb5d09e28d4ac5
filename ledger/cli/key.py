"""`tachograph key`: the keys that sign checkpoints, made, replaced and revoked, and their public halves for others."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import click

from harness.ids import RandomIds
from ledger.audit.notes.notes import VerifierKey
from ledger.audit.signing.keyring import create_key, default_key_path, public_keys, revoke_key, rotate_key
from ledger.audit.signing.keys import known_keys
from ledger.cli.common import (
    EXIT_UNUSABLE,
    command,
    db_option,
    fail,
    json_option,
    open_existing,
    plain,
    print_json,
    table,
)
from ledger.reading.reader import LedgerReader
from ledger.store.place import is_postgres, path_of
from ledger.words.format import instant

key_option = click.option(
    "--key",
    "key_file",
    envvar="TACHOGRAPH_KEY",
    show_envvar=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The private key's file; by default that of the ledger's file with .key added.",
)
anchor_option = click.option(
    "--anchor",
    envvar="TACHOGRAPH_ANCHOR",
    show_envvar=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file elsewhere, to which the checkpoint is appended.",
)
actor_option = click.option("--actor", help="Who does it; kept for ever, so a pseudonym.")
origin_option = click.option("--origin", metavar="NAME", help="What the log is called in checkpoints.")


def key_path(key_file: Path | None, db: str | None) -> Path:
    """Where the private key is."""
    if key_file is not None:
        return key_file
    if db is None or is_postgres(db):
        raise click.UsageError("say with --key where the key is: only a ledger in a file has one beside it")
    return default_key_path(path_of(db))


@click.group()
def key() -> None:
    """The keys that sign checkpoints."""


@key.command()
@db_option
@key_option
@origin_option
@actor_option
@json_option
@command
async def create(db: str, key_file: Path | None, origin: str | None, actor: str | None, as_json: bool) -> None:
    """Make a key in a new file, which only its owner may read."""
    path = key_path(key_file, db)
    async with await open_existing(db) as ledger:
        made = await create_key(ledger, path, RandomIds(), origin=origin, actor=actor)
    _say("made", path, made, as_json)


@key.command()
@db_option
@key_option
@origin_option
@actor_option
@json_option
@command
async def rotate(db: str, key_file: Path | None, origin: str | None, actor: str | None, as_json: bool) -> None:
    """Put a new key in the file. With --origin the log gets a new name, as it must after a failover."""
    path = key_path(key_file, db)
    async with await open_existing(db) as ledger:
        old, new = await rotate_key(ledger, path, RandomIds(), origin=origin, actor=actor)
    _say(f"replaced key {old.key_id}", path, new, as_json)


@key.command()
@click.argument("key_id")
@db_option
@click.option("--reason", default="REVOKED", show_default=True, help="Why, as a code.")
@actor_option
@json_option
@command
async def revoke(key_id: str, db: str, reason: str, actor: str | None, as_json: bool) -> None:
    """Let nothing be signed with the key KEY_ID from now on."""
    async with await open_existing(db) as ledger:
        is_new = await revoke_key(ledger, key_id, reason=reason, actor=actor)
    if as_json:
        print_json({"key_id": key_id, "is_new": is_new})
    else:
        click.echo(f"key {key_id} {'is' if is_new else 'was'} revoked")


@key.command("list")
@db_option
@json_option
@command
async def list_keys(db: str, as_json: bool) -> None:
    """List the keys that the ledger knows, in the order in which they came into use."""
    async with await LedgerReader.open(db) as reader:
        keys = list((await known_keys(reader)).values())
    if as_json:
        print_json([{"state": one.state, **plain(one)} for one in keys])
        return
    rows = [[one.key_id, one.state, instant(one.created_us), one.fingerprint or "-"] for one in keys]
    click.echo(table([["KEY", "STATE", "SINCE", "FINGERPRINT (SHA-256)"], *rows]) if rows else "no keys")


@key.command()
@click.option("--db", envvar="TACHOGRAPH_DB", show_envvar=True, metavar="URL", help="The ledger, to find its key by.")
@key_option
@click.option("--all", "is_all", is_flag=True, help="Also the keys that were replaced.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="A new file to write it to.")
@command
async def export(db: str | None, key_file: Path | None, is_all: bool, output: Path | None) -> None:
    """Print the public half of the key, with which others verify; it is no secret."""
    keys = public_keys(key_path(key_file, db))
    text = "".join(f"{one}\n" for one in (keys if is_all else keys[:1]))
    if output is None:
        click.echo(text, nl=False)
    else:
        write_new(output, text)


def require_new(path: Path) -> None:
    """Refuse a file that is there: it may be the ledger itself, its key, or a checkpoint that was kept."""
    if path.exists():
        _refuse(path)


def _refuse(path: Path) -> NoReturn:
    fail(f"{path} exists already, and nothing is overwritten", EXIT_UNUSABLE)


def write_new(path: Path, text: str) -> None:
    """Write a new file that others are given; the reason in one line if that cannot be done. None is overwritten."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        _refuse(path)
    except OSError as error:
        fail(f"{path} cannot be written ({error.strerror})", EXIT_UNUSABLE)


def _say(done: str, path: Path, made: VerifierKey, as_json: bool) -> None:
    if as_json:
        facts = {"key_id": made.key_id, "origin": made.name, "fingerprint": made.fingerprint}
        print_json({**facts, "public_key": str(made), "file": str(path)})
        return
    click.echo(f"{done}: key {made.key_id} in {path}")
    click.echo(f"origin       {made.name}")
    click.echo(f"fingerprint  {made.fingerprint}")
    click.echo(f"public key   {made}")
