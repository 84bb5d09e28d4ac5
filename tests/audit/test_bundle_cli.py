"""`tachograph verify-bundle` says what it looked at and nothing more, and its exit code what came of it."""

import json

import pytest
from click.testing import CliRunner

from ledger.audit.bundle import manifest as names
from ledger.audit.notes.notes import SigningKey
from ledger.cli.verify_bundle import verify_bundle
from tests.audit.bundles import (
    KEY,
    LOG,
    OTHER_KEY,
    SIZE,
    members_of,
    three_runs,
    write_members,
    write_period,
    write_run,
)
from tests.ledger.scripted import EPOCH_US


@pytest.fixture
def call():
    return lambda *arguments: CliRunner().invoke(verify_bundle, [str(argument) for argument in arguments])


def test_a_bundle_that_is_right_is_told_with_what_vouches_for_it(call, run_bundle, keys_file):
    found = call(run_bundle, "--key", keys_file)
    assert found.exit_code == 0
    for said in ("session-1/run-2 of ledger ledger-1", "13, each linked", KEY.verifier.fingerprint, "6 stored"):
        assert said in found.stdout
    assert "bundle's own key" not in found.stdout
    assert "bundle's own key" in call(run_bundle).stdout


def test_what_no_checkpoint_covers_is_told(call, tmp_path, keys_file):
    partly = write_run(tmp_path / "partly", LOG, tree=LOG.signed_tree(10))
    assert "9 came later, and no checkpoint vouches for them" in call(partly, "--key", keys_file).stdout
    not_at_all = write_run(tmp_path / "not", LOG)
    assert (call(not_at_all).exit_code, "no checkpoint" in call(not_at_all).stdout) == (0, True)
    assert call(not_at_all, "--key", keys_file).exit_code == 1


def test_the_first_thing_that_is_wrong_is_named(call, run_bundle, tmp_path, keys_file):
    members = members_of(run_bundle)
    changed = members | {names.ROWS: members[names.ROWS].replace(b'"SUCCESS"', b'"FAILED"')}
    found = call(write_members(tmp_path / "changed", changed), "--key", keys_file)
    assert (found.exit_code, "WRONG" in found.stdout, "row 1, diagnosis_run" in found.stdout) == (1, True, True)
    found = call(tmp_path / "changed", "--json")
    assert (found.exit_code, json.loads(found.stdout)["finding"]["problem"]) == (1, "row_differs")


def test_what_cannot_be_checked_is_one_line_and_exit_code_2(call, run_bundle, tmp_path, keys_file):
    (tmp_path / "text").write_text("no bundle")
    (tmp_path / "empty").write_text("")
    (tmp_path / "note").write_text(LOG.checkpoint(8).sign(KEY).note)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for arguments in (
        (tmp_path / "missing",),
        (tmp_path / "text",),
        (run_bundle, "--key", tmp_path / "empty"),
        (run_bundle, "--key", tmp_path / "text"),
        (run_bundle, "--key", tmp_path / "binary"),
        (run_bundle, "--key", keys_file, "--checkpoint", tmp_path / "note"),
        (run_bundle, "--key", keys_file, "--checkpoint", tmp_path / "text"),
    ):
        found = call(*arguments)
        assert (found.exit_code, found.stderr.count("Error: "), "Traceback" in found.output) == (2, 1, False)


def test_a_checkpoint_that_was_kept_is_compared(call, run_bundle, tmp_path, keys_file):
    for size, exit_code in ((9, 0), (SIZE, 0)):
        (tmp_path / "kept").write_text(LOG.checkpoint(size).sign(KEY).note)
        assert call(run_bundle, "--key", keys_file, "--checkpoint", tmp_path / "kept").exit_code == exit_code
    (tmp_path / "kept").write_text(three_runs("x").checkpoint(9).sign(KEY).note)
    assert call(run_bundle, "--key", keys_file, "--checkpoint", tmp_path / "kept").exit_code == 1
    (tmp_path / "kept").write_text(LOG.checkpoint(9).sign(OTHER_KEY).note)
    assert call(run_bundle, "--key", keys_file, "--checkpoint", tmp_path / "kept").exit_code == 2


def test_the_runs_of_a_period_are_counted_and_listed(call, tmp_path, keys_file):
    path = write_period(tmp_path / "period.bundle", LOG, 10, SIZE)
    found = call(path, "--key", keys_file, "--runs")
    for said in ("4: every one", "the places 10 to 39 of the log", "3 SUCCESS", "still open: 1", "session-2/run-4"):
        assert said in found.stdout
    assert "session-2/run-4" not in call(path, "--key", keys_file).stdout
    told = json.loads(call(path, "--json").stdout)
    assert [run["run_id"] for run in told["runs"]][-1] == "run-4"
    assert told["manifest"]["tree"]["size"] == SIZE


def test_a_period_is_not_said_to_be_whole_where_its_maker_chose_where_it_ends(call, tmp_path, keys_file):
    members = members_of(write_period(tmp_path / "period.bundle", LOG, 10, SIZE - 5))
    begin, end = EPOCH_US + 10, EPOCH_US + SIZE - 5
    for times, unknown in (
        ({"from_us": begin + 1, "to_us": end - 1}, []),
        ({"from_us": begin, "to_us": end - 1}, ["came before place 10"]),
        ({"from_us": begin + 1, "to_us": end}, ["after its 35 events"]),
        ({"from_us": 0, "to_us": end + 10**9}, ["came before place 10", "after its 35 events"]),
    ):
        (tmp_path / "says").unlink(missing_ok=True)
        said = call(write_members(tmp_path / "says", members, says=times), "--key", keys_file).stdout
        assert said.count("nothing in it shows") == len(unknown)
        assert all(text in said for text in unknown)
    whole = json.loads(call(write_period(tmp_path / "whole", LOG, 0, SIZE), "--json").stdout)
    assert (whole["is_begin_shown"], whole["is_end_shown"]) == (True, False)
    assert whole["recorded_us"] == [EPOCH_US, EPOCH_US + SIZE - 1]


def test_the_name_of_a_key_moves_no_cursor(call, tmp_path):
    key = SigningKey("log\x9b2J\u202eexample", bytes(32))
    found = call(write_run(tmp_path / "odd", LOG, tree=LOG.signed_tree(SIZE, key=key)))
    assert (found.exit_code, "by log 2J example" in found.stdout) == (0, True)
    assert all(character.isprintable() or character == "\n" for character in found.output)


def test_the_proof_of_one_event_is_printed_alone(call, run_bundle, keys_file):
    found = call(run_bundle, "--key", keys_file, "--proof", 3)
    assert found.exit_code == 0
    assert found.stdout.startswith("c2sp.org/tlog-proof@v1\nindex 8\n")
    assert found.stdout.endswith(LOG.checkpoint(SIZE).sign(KEY).note)
    assert call(run_bundle, "--proof", 14).exit_code == 1
    assert call(run_bundle, "--proof", 0).exit_code == 2
