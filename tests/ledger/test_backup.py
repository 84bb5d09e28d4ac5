"""A backup is the ledger of one moment; what is restored from it is that ledger, and says that it goes on by itself."""

import asyncio
import json
import sqlite3
import threading
from hashlib import sha256

import pytest

from ledger import Ledger, LedgerNotLive, LedgerReader, LedgerUnreadable, Signing
from ledger.audit.notes.notes import SigningKey
from ledger.audit.signing.anchor import Anchor
from ledger.audit.signing.kept import read_anchor
from ledger.copies.backup import back_up, restore
from ledger.erasing.erasures import ErasureList, lines_of
from ledger.errors import InvalidErasureList, LedgerDamaged
from ledger.store import copies
from ledger.verifying import verify
from tests.ledger.scripted import ScriptedRun

SECRET = "the password is hunter2"


@pytest.fixture
async def recorded(ledger):
    for run_id in ("run-1", "run-2"):
        for submission in ScriptedRun(run_id).whole():
            ledger.journal.submit(submission).result()
    return ledger


def log_of(path):
    """Every event with its position and link."""
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT * FROM event ORDER BY pos").fetchall()
    connection.close()
    return rows


async def list_erasures(path, to):
    async with await LedgerReader.open(path) as reader:
        to.write_bytes(b"".join([line async for line in lines_of(reader, await reader.ledger_id())]))
    return ErasureList(to)


async def test_a_backup_is_one_verified_file_with_the_same_positions_and_links(recorded, path, tmp_path):
    dest = tmp_path / "backups" / "one.db"
    report = await back_up(path, dest, is_verified=True)
    assert report.verified.is_right
    assert [file.name for file in dest.parent.iterdir()] == ["one.db"]
    assert log_of(dest) == log_of(path)
    async with await LedgerReader.open(dest) as reader:
        assert (await reader.trace("session-1", "run-1")).answer.text == "The disk is full."


async def test_no_token_of_a_backup_opens_what_is_restored_from_it(recorded, path, tmp_path):
    made, bearer = await recorded.tokens.make("ops-1", ["read"])
    session = await recorded.tokens.enter(await recorded.tokens.link(made.token_id))
    await back_up(path, tmp_path / "b.db")
    await recorded.tokens.revoke(made.token_id, reason="LOST")
    await restore(tmp_path / "b.db", tmp_path / "new.db")
    async with await Ledger.open(tmp_path / "new.db") as restored:
        assert [one.state(0) for one in await restored.tokens.all()] == ["revoked"]
        assert await restored.tokens.by_bearer(bearer) is None
        assert await restored.tokens.by_session(session) is None
        told = [(event.type, event.fields.get("reason")) for event in await restored.reader.system_events()]
        assert told[-2:] == [("ledger.restored", None), ("token.revoked", "RESTORED")]


async def test_a_backup_can_be_read_but_not_written(recorded, path, tmp_path):
    await back_up(path, tmp_path / "b.db")
    with pytest.raises(LedgerNotLive, match="is a backup"):
        await Ledger.open(tmp_path / "b.db")
    assert not (tmp_path / "b.db.owners").exists()


async def test_a_backup_is_of_one_moment_while_others_append(ledger, path, tmp_path):
    begun, stop = threading.Event(), threading.Event()

    def append():
        number = 0
        while not stop.is_set():
            for submission in ScriptedRun(f"run-{number}", writer_id=f"w{number}").whole():
                ledger.journal.submit(submission).result()
            number += 1
            begun.set()

    def slowly(done, of):
        # Whatever is copied, something is appended before the next pages are.
        before = ledger_length(path)
        while ledger_length(path) == before:
            stop.wait(0.001)

    appending = threading.Thread(target=append)
    appending.start()
    await asyncio.to_thread(begun.wait)
    pages_at_once, copies.PAGES_AT_ONCE = copies.PAGES_AT_ONCE, 8
    try:
        await back_up(path, tmp_path / "b.db", on_progress=slowly)
    finally:
        copies.PAGES_AT_ONCE = pages_at_once
        stop.set()
        appending.join()
    assert (await verify(tmp_path / "b.db")).findings == ()
    taken = log_of(tmp_path / "b.db")
    assert taken == log_of(path)[: len(taken)]
    assert len(taken) < ledger_length(path)


def ledger_length(path):
    connection = sqlite3.connect(path)
    (length,) = connection.execute("SELECT max(pos) FROM event").fetchone()
    connection.close()
    return length


async def test_nothing_is_overwritten_and_what_fails_leaves_nothing(recorded, path, tmp_path):
    dest = tmp_path / "backups" / "b.db"

    def fail(done, of):
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError):
        await back_up(path, dest, on_progress=fail)
    assert list(dest.parent.iterdir()) == []
    dest.write_text("mine")
    with pytest.raises(LedgerUnreadable, match="nothing is overwritten"):
        await back_up(path, dest)
    assert dest.read_text() == "mine"


async def test_a_backup_that_is_wrong_is_not_put_in_place(recorded, path, tmp_path, plain):
    plain().execute("UPDATE diagnosis_run SET status = 'FAILED' WHERE run_id = 'run-1'")
    with pytest.raises(LedgerDamaged, match=r"diagnosis_run\.status"):
        await back_up(path, tmp_path / "b.db", is_verified=True)
    assert not (tmp_path / "b.db").exists()


async def test_a_restored_ledger_and_the_one_that_goes_on_may_share_key_and_anchor(recorded, path, tmp_path):
    key, anchor = SigningKey("log.example/1", bytes(32)), Anchor(tmp_path / "anchor")
    signing = Signing(key=key, anchor=anchor.path)
    await back_up(path, tmp_path / "b.db")
    report = await restore(tmp_path / "b.db", tmp_path / "one.db")
    for name, place in (("log.example/1", path), (f"log.example/1/{report.restore_id}", tmp_path / "one.db")):
        async with await Ledger.open(place, signing=signing) as ledger:
            ledger.journal.submit(ScriptedRun("run-9").start()).result()
            assert (await ledger.checkpoint()).open([key.verifier], origin=name)
        assert (await verify(place, trusted=read_anchor(anchor.path, [key.verifier], name))).findings == ()
        # What the other one has signed is another log's, and nobody takes it for this one's.
    (finding, *_) = (await verify(path, trusted=read_anchor(anchor.path, [key.verifier]))).findings
    assert f"log.example/1/{report.restore_id}" in finding.detail


async def test_a_restored_ledger_keeps_the_log_and_says_that_it_goes_on_by_itself(recorded, path, tmp_path):
    backup = await back_up(path, tmp_path / "b.db")
    reports = [await restore(tmp_path / "b.db", tmp_path / name) for name in ("one.db", "two.db")]
    before = log_of(path)
    ends = []
    for report in reports:
        log = log_of(report.path)
        assert log[: len(before)] == before
        ends.append(log[-1][-1])
        async with await Ledger.open(report.path) as ledger:
            (said,) = await ledger.reader.system_events()
            assert said.fields["backup_id"] == backup.backup_id
            assert said.fields["event_count"] == len(before)
            ledger.journal.submit(ScriptedRun("run-9").start()).result()
    assert ends[0] != ends[1]
    assert sorted(file.name for file in tmp_path.glob("one.db*")) == ["one.db", "one.db.lock"]


async def test_runs_that_were_going_on_are_ended_in_what_is_restored_and_nowhere_else(ledger, path, tmp_path):  # E7
    run = ScriptedRun()
    ledger.journal.submit(run.start()).result()
    await back_up(path, tmp_path / "b.db")
    await restore(tmp_path / "b.db", tmp_path / "restored.db")
    async with await LedgerReader.open(tmp_path / "restored.db") as reader:
        assert (await reader.trace("session-1", "run-1")).run.outcome_reason == "HARNESS_LOST"
    ledger.journal.submit(run.end()).result()


@pytest.mark.parametrize("about", ["run", "session", "digest", "age"])
async def test_what_was_erased_since_the_backup_does_not_come_back(ledger, path, tmp_path, clock, about):  # D19
    run = ScriptedRun()
    for submission in (run.start(), run.answer(SECRET), run.end()):
        ledger.journal.submit(submission).result()
    other = ScriptedRun("run-2", "session-2", writer_id="w2")
    ledger.journal.submit(other.start()).result()
    answer = (await ledger.reader.trace("session-1", "run-1")).answer
    await back_up(path, tmp_path / "b.db")
    if about == "age":
        clock.advance(10**6)
        erased = await ledger.erase_older_than(0)
    else:
        what = {"run": ("session-1", "run-1"), "session": "session-1", "digest": answer.digest}[about]
        erased = await ledger.erase(**{about: what}, actor="dpo-1")
    erasures = await list_erasures(path, tmp_path / "erasures.jsonl")
    report = await restore(tmp_path / "b.db", tmp_path / "restored.db", erasures=erasures, wall_clock=clock)
    assert report.erasures_repeated == 1
    async with await LedgerReader.open(tmp_path / "restored.db") as reader:
        answer = (await reader.trace("session-1", "run-1")).answer
        assert (answer.state, answer.erasure.erasure_id) == ("erased", erased.erasure_id)
        assert (await reader.trace("session-2", "run-2")).run.summary.query is not None
    assert SECRET.encode() not in (tmp_path / "restored.db").read_bytes()


async def test_an_erasure_that_the_backup_knows_is_not_repeated(recorded, path, tmp_path):
    await recorded.erase(run=("session-1", "run-1"))
    await back_up(path, tmp_path / "b.db")
    erasures = await list_erasures(path, tmp_path / "erasures.jsonl")
    report = await restore(tmp_path / "b.db", tmp_path / "restored.db", erasures=erasures)
    assert report.erasures_repeated == 0


@pytest.mark.parametrize("text", ["", "junk", "[]\n", '{"kind": "tachograph erasures", "version": 1}\n'])
async def test_a_list_that_is_none_or_another_ledgers_is_refused_before_anything_is_made(
    recorded, path, tmp_path, text
):
    await back_up(path, tmp_path / "b.db")
    (tmp_path / "list").write_text(text)
    with pytest.raises(InvalidErasureList):
        await restore(tmp_path / "b.db", tmp_path / "r.db", erasures=ErasureList(tmp_path / "list"))
    assert not (tmp_path / "r.db").exists()


async def test_a_list_that_was_cut_or_changed_is_refused_wherever_that_was(recorded, path, tmp_path):  # D19
    for run_id in ("run-1", "run-2"):
        await recorded.erase(run=("session-1", run_id))
    erasures = await list_erasures(path, tmp_path / "erasures.jsonl")
    ledger_id = await recorded.reader.ledger_id()
    lines = erasures.path.read_bytes().splitlines(keepends=True)
    for bad, problem in [
        *((lines[:count], "has no end") for count in range(1, len(lines))),
        (lines[:2] + lines[3:], "is not as it was written"),
        ([*lines[:-1], lines[1], lines[-1]], "is not as it was written"),
        (lines * 2, "goes on after its end"),
        ([*lines[:-1], lines[-1][:-9]], "no JSON"),
    ]:
        erasures.path.write_bytes(b"".join(bad))
        with pytest.raises(InvalidErasureList, match=problem):
            erasures.check(ledger_id)
    erasures.path.write_bytes(b"".join(lines))
    erasures.check(ledger_id)


async def test_a_decision_that_a_list_names_twice_is_carried_out_once(recorded, path, tmp_path):  # D19
    await back_up(path, tmp_path / "b.db")
    await recorded.erase(run=("session-1", "run-1"))
    erasures = await list_erasures(path, tmp_path / "erasures.jsonl")
    first, *said, _ = erasures.path.read_bytes().splitlines(keepends=True)
    twice = b"".join([first, *said, *said])
    end = {"line_count": 1 + 2 * len(said), "sha256": sha256(twice).hexdigest()}
    erasures.path.write_bytes(twice + json.dumps(end).encode())
    report = await restore(tmp_path / "b.db", tmp_path / "restored.db", erasures=erasures)
    assert report.erasures_repeated == 1
