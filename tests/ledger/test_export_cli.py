"""`tachograph export` makes one file, says what checking it came to, and leaves nothing where it cannot."""

import asyncio
import json

import pytest
from click.testing import CliRunner

from ledger import Ledger
from ledger.audit.notes.checkpoint import Checkpoint
from ledger.audit.signing.anchor import Anchor
from ledger.audit.signing.keyring import default_key_path
from ledger.audit.signing.keys import read_key_file
from tests.ledger import commands as cli
from tests.ledger.scripted import ScriptedRun

DAY = ("--from", "2027-01-15", "--to", "2027-01-16")


@pytest.fixture
def recorded(path, clock):
    async def record():
        async with await Ledger.open(path, wall_clock=clock) as ledger:
            for submission in ScriptedRun().whole():
                ledger.journal.submit(submission).result()

    asyncio.run(record())
    return path


@pytest.fixture
def call(recorded, tmp_path):
    def call(command, *arguments, db=True):
        given = [str(argument) for argument in arguments]
        return CliRunner().invoke(command, [*given, *(["--db", str(recorded)] if db else [])])

    return call


@pytest.fixture
def with_key(call, tmp_path):
    assert call(cli.key, "create").exit_code == 0
    assert call(cli.key, "export", "-o", tmp_path / "public").exit_code == 0
    return tmp_path / "public"


def test_a_run_is_exported_with_a_fresh_checkpoint_where_the_key_is_at_hand(call, with_key, tmp_path):
    made = call(cli.export, "session-1/run-1", "-o", tmp_path / "run.bundle")
    assert (made.exit_code, "all are in the log of" in made.stdout) == (0, True)
    checked = call(cli.verify_bundle, tmp_path / "run.bundle", "--key", with_key, db=False)
    assert (checked.exit_code, "bundle's own key" in checked.stdout) == (0, False)
    told = json.loads(call(cli.export, "session-1/run-1", "-o", tmp_path / "2", "--without-content", "--json").stdout)
    assert (told["is_right"], told["contents"], told["file"]) == (True, {"withheld": 6}, str(tmp_path / "2"))


def test_what_contradicts_the_anchor_is_not_signed_for_a_bundle_either(call, with_key, recorded, tmp_path, monkeypatch):
    key, anchor = read_key_file(default_key_path(recorded)), Anchor(tmp_path / "anchor")
    monkeypatch.setenv("TACHOGRAPH_ANCHOR", str(anchor.path))
    assert call(cli.export, "session-1/run-1", "-o", tmp_path / "run.bundle").exit_code == 0
    assert anchor.latest(key.name).size > 0
    anchor.append(Checkpoint(key.name, 1_000, bytes(32)).sign(key))
    refused = call(cli.export, "session-1/run-1", "-o", tmp_path / "again.bundle")
    assert (refused.exit_code, "nothing was signed" in refused.output) == (1, True)
    assert not (tmp_path / "again.bundle").exists()


def test_without_a_key_it_is_said_that_nobody_vouches(call, tmp_path):
    made = call(cli.export, "session-1/run-1", "-o", tmp_path / "run.bundle")
    assert made.exit_code == 0
    assert "No key was given" in made.stdout
    assert call(cli.export, *DAY, "-o", tmp_path / "period.bundle").exit_code == 2


def test_a_period_is_exported_and_a_kept_checkpoint_compared(call, with_key, tmp_path):
    assert call(cli.checkpoint, "-o", tmp_path / "kept").exit_code == 0
    assert call(cli.export, *DAY, "-o", tmp_path / "period.bundle").exit_code == 0
    kept = ("--key", with_key, "--checkpoint", tmp_path / "kept")
    assert call(cli.verify_bundle, tmp_path / "period.bundle", *kept, db=False).exit_code == 0
    public = ("--public-key", with_key, "--checkpoint", tmp_path / "kept")
    assert call(cli.export, "session-1/run-1", "-o", tmp_path / "run.bundle", *public).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        ((), 2),
        (("session-1/run-1", *DAY), 2),
        (("--from", "2027-01-15"), 2),
        (("--from", "yesterday", "--to", "2027-01-16"), 2),
        (("--from", "2027-01-15T08:00:00", "--to", "2027-01-16"), 2),
        (("--from", "2027-01-16", "--to", "2027-01-15"), 2),
        (("run-1",), 2),
        (("session-2/run-1",), 1),
        (("session-1/run-9",), 1),
        (("session-1/run-1", "--public-key", "no such file"), 2),
    ],
)
def test_wrong_use_and_what_is_not_there_are_one_line_and_no_file(call, with_key, tmp_path, arguments, exit_code):
    made = call(cli.export, *arguments, "-o", tmp_path / "made")
    assert (made.exit_code, made.stderr.count("Error: ")) == (exit_code, 1)
    assert not (tmp_path / "made").exists()
