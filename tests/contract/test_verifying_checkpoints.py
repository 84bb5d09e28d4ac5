"""Under a checkpoint that was kept outside, whatever was changed, removed or cut off is found (SPEC E9)."""

from __future__ import annotations

import asyncio
import json

import pytest
from click.testing import CliRunner

from ledger.audit.notes.checkpoint import Checkpoint
from ledger.audit.notes.notes import SigningKey
from ledger.cli.verify import verify as verify_command
from ledger.verifying import verify
from tests.contract.test_following import all_ordered
from tests.contract.test_verifying import disarm
from tests.contract.test_verifying_rules import forge
from tests.ledger.scripted import ScriptedRun

KEY = SigningKey("ledger.example", b"\x01" * 32)


@pytest.fixture
async def kept(ledger):
    """Two runs, and a checkpoint of them; a third run came later."""
    for run_id in ("run-1", "run-2"):
        for submission in ScriptedRun(run_id).whole():
            ledger.journal.submit(submission).result()
    checkpoint = await checkpoint_of(ledger)
    for submission in ScriptedRun("run-3").whole():
        ledger.journal.submit(submission).result()
    return checkpoint


async def checkpoint_of(ledger):
    await all_ordered(ledger)
    size = await ledger.reader.on_tree(lambda tree: tree.size())
    root = await ledger.reader.on_tree(lambda tree: tree.root_at(size))
    return Checkpoint(KEY.name, size, root)


async def test_what_is_under_a_checkpoint_is_told_apart_from_the_tail(ledger, kept, database):
    report = await verify(database.url, trusted=[kept])
    assert (report.findings, report.anchored_count) == ((), kept.size)
    assert report.tail.event_count == report.event_count - kept.size > 0
    assert (await verify(database.url)).anchored_count == 0
    report = await verify(database.url, trusted=[await checkpoint_of(ledger), kept])
    assert (report.findings, report.anchored_count, report.tail.event_count) == ((), report.event_count, 0)


async def test_a_log_written_anew_with_all_its_hashes_is_found(ledger, kept, database, plain):
    outsider = plain()
    for table in ("event", "stream", "diagnosis_run"):
        disarm(outsider, table)
    rows = outsider.execute("SELECT body FROM event WHERE stream_id = 'r:run-1' ORDER BY seq")
    bodies = [json.loads(bytes(body)) for (body,) in rows]
    bodies[0]["agent"] = "somebody"
    forge(outsider, "r:run-1", bodies)
    outsider.execute("UPDATE diagnosis_run SET agent = 'somebody' WHERE run_id = 'run-1'")
    assert {finding.problem for finding in (await verify(database.url)).findings} == {"rules_missing"}
    problems = {finding.problem for finding in (await verify(database.url, trusted=[kept])).findings}
    assert problems == {"rules_missing", "checkpoint_differs"}


async def test_a_checkpoint_of_more_events_than_there_are_is_not_met(kept, database):
    (finding,) = (await verify(database.url, trusted=[Checkpoint(kept.origin, 10_000, kept.root)])).findings
    assert (finding.problem, "10,000 events were signed" in finding.detail) == ("checkpoint_differs", True)


async def test_the_command_believes_only_what_the_given_key_signed(kept, database, tmp_path):
    note, key, other = tmp_path / "note", tmp_path / "key", tmp_path / "other"
    note.write_text(kept.sign(KEY).note)
    key.write_text(f"{KEY.verifier}\n")
    other.write_text(f"{SigningKey(KEY.name, bytes(32)).verifier}\n")

    def call(*args):
        return CliRunner().invoke(verify_command, ["--db", database.url, "--checkpoint", str(note), *args])

    right, foreign, none = [
        await asyncio.to_thread(call, *args) for args in (("--key", str(key)), ("--key", str(other)), ())
    ]
    assert (right.exit_code, f"{kept.size} events under a checkpoint" in right.stdout) == (0, True)
    assert (foreign.exit_code, none.exit_code) == (2, 2)


async def test_of_an_event_with_another_body_nobody_says_that_it_is_the_one_that_was_signed(
    kept, database, plain, tmp_path
):
    note, key = tmp_path / "note", tmp_path / "key"
    note.write_text(kept.sign(KEY).note)
    key.write_text(f"{KEY.verifier}\n")
    outsider = plain()
    disarm(outsider, "event")
    outsider.execute("UPDATE event SET body = ? WHERE stream_id = 'r:run-1' AND seq = 3", [b"{}"])
    args = ["--db", database.url, "--checkpoint", str(note), "--key", str(key)]
    said = await asyncio.to_thread(lambda: CliRunner().invoke(verify_command, args))
    assert (said.exit_code, "body_changed" in said.stdout) == (1, True)
    assert f"the links of {kept.size} events under a checkpoint" in said.stdout
