"""Checkpoints: signed of what the log is, when they should be, and never of another log than before (SPEC E9)."""

import asyncio
import logging

import pytest

from harness.clock import ManualClock
from harness.events import KeyRevoked, KeyRotated, LedgerRestored
from harness.ids import RandomIds
from ledger import Receipt, RunNotFound, Signing
from ledger.audit.errors import (
    AnchorError,
    DamagedTree,
    InvalidKey,
    InvalidProof,
    KeyFileError,
    LogChanged,
    LogShortened,
    NoCheckpoint,
    ReplacedKey,
    RevokedKey,
    SigningOff,
)
from ledger.audit.notes.checkpoint import Checkpoint
from ledger.audit.notes.notes import SigningKey
from ledger.audit.signing.anchor import Anchor
from ledger.audit.signing.keyring import create_key, revoke_key, rotate_key
from ledger.audit.signing.keys import facts_of, known_keys, read_key_file, write_key_file
from ledger.audit.signing.signing import Signer
from ledger.audit.tree.merkle import leaf_hash
from tests.audit.trees import root_of
from tests.contract.test_following import ordered, record, record_many
from tests.ledger.scripted import ScriptedRun

KEY = SigningKey("log.example/1", bytes(range(32)))
KEYS = [KEY.verifier]
OTHER = SigningKey("log.example/1", bytes(32))


@pytest.fixture
def anchor(tmp_path):
    return Anchor(tmp_path / "elsewhere.anchor")


@pytest.fixture
def signing(anchor):
    return Signing(key=KEY, anchor=anchor.path, every_s=3_600)


@pytest.fixture
async def signed(database, signing):
    """A ledger that signs, in which a run is under way."""
    async with await database.open(signing=signing) as ledger:
        await record(ledger, ScriptedRun().start())
        yield ledger


async def root_now(ledger):
    links = await ledger.reader.on_tree(lambda tree: tree.links(0, 10_000))
    return len(links), root_of(map(leaf_hash, links))


async def stored(ledger):
    return await ledger.reader.on_tree(lambda tree: tree.latest("log.example/1"))


async def eventually(condition):
    async with asyncio.timeout(20):
        while not await condition():
            await asyncio.sleep(0.02)


async def test_a_checkpoint_is_of_every_event_that_was_acknowledged(signed, anchor):
    run = ScriptedRun("run-2", writer_id="w2")
    await record(signed, run.start())
    for count in (1, 300):
        await record_many(signed, run, count)
        opened = (await signed.checkpoint()).open(KEYS, origin="log.example/1")
        assert (opened.size, opened.root) == await root_now(signed)
        assert (await stored(signed)).note == list(anchor.notes())[-1].note
        assert anchor.latest("log.example/1") == opened


async def test_where_nothing_has_come_there_is_nothing_new_to_sign(signed, anchor):
    first = await signed.checkpoint()
    assert [await signed.checkpoint() for _ in range(3)] == [first] * 3
    assert list(anchor.notes())[-1] == first
    assert len({note.note for note in anchor.notes()}) == len(list(anchor.notes()))


async def test_the_end_of_a_run_has_a_checkpoint_soon_and_many_ends_have_one(signed, anchor):
    await signed.checkpoint()
    before = signed.measures().signing
    for number in range(20):
        for submission in ScriptedRun(f"run-{number + 2}", writer_id=f"w{number + 2}").whole():
            last = signed.journal.submit(submission)
    await asyncio.wrap_future(last)
    size, _ = await root_now(signed)

    async def is_covered():
        return signed.measures().signing.size >= size

    await eventually(is_covered)
    after = signed.measures().signing
    assert after.signed_count - before.signed_count <= 3
    assert after.refused == {}
    assert anchor.latest("log.example/1").size == after.size


async def test_one_is_signed_every_so_often_and_at_the_end(database, anchor):
    async with await database.open(signing=Signing(key=KEY, anchor=anchor.path, every_s=1)) as ledger:
        await record(ledger, ScriptedRun().start())

        async def is_covered():
            return ledger.measures().signing.size > 1

        await eventually(is_covered)
        await record(ledger, ScriptedRun("run-2", writer_id="w2").start())
        await ordered(ledger, 4)
        size, root = await root_now(ledger)
    assert anchor.latest("log.example/1") == Checkpoint("log.example/1", size, root)


async def test_without_a_key_nothing_is_signed(ledger):
    with pytest.raises(SigningOff):
        await ledger.checkpoint()
    assert ledger.measures().signing is None


async def test_the_log_goes_on_from_process_to_process(database, signing, anchor):
    for number in range(3):
        async with await database.open(signing=signing) as ledger:
            for submission in ScriptedRun(f"run-{number}", writer_id=f"w{number}").whole():
                await record(ledger, submission)
            await ledger.checkpoint()
            _, root = await root_now(ledger)
    sizes = [note.open(KEYS).size for note in anchor.notes()]
    assert sizes == sorted(set(sizes))
    assert anchor.latest("log.example/1").root == root


async def test_several_may_sign_one_log_at_once(database, signing, anchor):
    async with await database.open(signing=signing) as one, await database.open(signing=signing) as two:
        for number, ledger in enumerate([one, two] * 3):
            await record(ledger, ScriptedRun(f"run-{number}", writer_id=f"w{number}").start())
            await asyncio.gather(*(each.checkpoint() for each in (one, two) * 2))
        assert one.measures().signing.refused == two.measures().signing.refused == {}
        links = await one.reader.on_tree(lambda tree: tree.links(0, 10_000))
    for note in anchor.notes():
        opened = note.open(KEYS)
        assert opened.root == root_of(map(leaf_hash, links[: opened.size]))


async def test_a_clock_that_is_set_back_changes_nothing_of_what_is_signed(database, signing, anchor):
    clock = ManualClock()
    async with await database.open(signing=signing, wall_clock=clock) as ledger:
        for number, step_s in enumerate((0, -86_400, 10**9, -(10**9))):
            clock.step_wall(step_s)
            await record(ledger, ScriptedRun(f"run-{number}", writer_id=f"w{number}").start())
            opened = (await ledger.checkpoint()).open(KEYS)
            assert (opened.size, opened.root) == await root_now(ledger)
            assert (await stored(ledger)).size == opened.size
    assert [note.open(KEYS).size for note in anchor.notes()] == sorted(
        {note.open(KEYS).size for note in anchor.notes()}
    )


async def test_another_key_of_the_same_log_signs_what_the_first_one_did(database, signing):
    async with await database.open(signing=signing) as ledger:
        first = await ledger.checkpoint()
    async with await database.open(signing=Signing(key=OTHER)) as ledger:
        second = await ledger.checkpoint()
        assert second.open([OTHER.verifier]).size >= first.open(KEYS).size
        assert list(await known_keys(ledger.reader)) == [KEY.verifier.key_id, OTHER.verifier.key_id]


def lay_open(plain, *tables):
    """Take the rules of these tables away, as whoever owns the database can."""
    outsider = plain()
    for table in tables:
        if outsider.dialect == "postgresql":
            outsider.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
        else:
            names = f"SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = '{table}'"
            for (name,) in outsider.execute(names):
                outsider.execute(f"DROP TRIGGER {name}")
    return outsider


CHANGED = "UPDATE event SET link = body_hash WHERE stream_id = 'r:run-1' AND seq = 1"


async def test_after_an_event_was_changed_nothing_is_signed(database, signing, anchor, plain, caplog):
    async with await database.open(signing=signing) as ledger:
        await record(ledger, ScriptedRun().start())
        await ledger.checkpoint()
    lay_open(plain, "event").execute(CHANGED)
    notes = list(anchor.notes())
    with caplog.at_level(logging.ERROR):
        async with await database.open(signing=signing) as ledger:
            with pytest.raises(LogChanged) as caught:
                await ledger.checkpoint()
            assert (caught.value.origin, caught.value.code) == ("log.example/1", "log_changed")
            assert ledger.measures().signing.refused["log_changed"] >= 1
    assert list(anchor.notes()) == notes
    assert sum("no checkpoint: nothing was signed" in line for line in caplog.messages) == 1


async def test_a_log_that_is_shorter_than_what_was_signed_is_not_signed_under_its_origin(
    database, signing, anchor, plain
):
    async with await database.open(signing=signing) as ledger:
        await record(ledger, ScriptedRun().start())
        await ledger.checkpoint()
    ahead = Checkpoint("log.example/1", anchor.latest("log.example/1").size + 1_000, b"\x01" * 32)
    anchor.append(ahead.sign(KEY))
    async with await database.open(signing=signing) as ledger:
        with pytest.raises(LogShortened):
            await ledger.checkpoint()
    # After a failover a new origin begins, by decision.
    new = Signing(key=SigningKey("log.example/2", bytes(31) + b"\x01"), anchor=anchor.path)
    async with await database.open(signing=new) as ledger:
        assert (await ledger.checkpoint()).open([new.key.verifier]).origin == "log.example/2"


async def test_a_tail_that_is_cut_under_an_open_ledger_is_not_signed(database, signed, plain):
    await record_many(signed, ScriptedRun(), 0)
    run = ScriptedRun("run-2", writer_id="w2")
    await record(signed, run.start())
    await signed.checkpoint()
    outsider = lay_open(plain, "event", *(("leaf",) if database.is_postgres else ()))
    if database.is_postgres:
        outsider.execute("DELETE FROM leaf WHERE leaf_index >= 2")
    outsider.execute("DELETE FROM event WHERE run_id = 'run-2'")
    with pytest.raises(LogShortened):
        await signed.checkpoint()


async def test_a_tile_that_is_not_of_the_events_stops_the_signing(database, signing, plain):
    async with await database.open(signing=signing) as ledger:
        run = ScriptedRun()
        await record(ledger, run.start())
        zeros = b"\x00" * 32
        put = "INSERT INTO tile (level, tile_index, root, hashes) VALUES (0, 0, ?, ?)"
        plain().execute(put, (zeros, zeros * 256))
        await record_many(ledger, run, 300)
        with pytest.raises(DamagedTree):
            await ledger.checkpoint()


async def test_what_cannot_be_anchored_is_said_and_anchored_later(database, tmp_path, signed, anchor):
    folder = tmp_path / "not" / "there"
    signing = Signing(key=KEY, anchor=folder / "anchor")
    async with await database.open(signing=signing) as ledger:
        with pytest.raises(AnchorError):
            await ledger.checkpoint()
        folder.mkdir(parents=True)
        signed_now = await ledger.checkpoint()
    assert Anchor(folder / "anchor").latest("log.example/1") == signed_now.open(KEYS)


async def test_a_key_is_recorded_once_and_signs_no_more_once_it_was_revoked(database, signing):
    async with await database.open(signing=signing) as one, await database.open(signing=signing) as two:
        (key,) = (await known_keys(one.reader)).values()
        assert (key.key_id, key.fingerprint) == (KEY.verifier.key_id, KEY.verifier.fingerprint)
        assert key.state == "in use"
        await two.record_system(KeyRevoked, key_id=key.key_id, reason="LOST")
    with pytest.raises(RevokedKey):
        await database.open(signing=signing)


async def test_no_checkpoint_is_of_an_event_that_takes_its_key_away(database, signing, monkeypatch):
    confirm = Signer._confirm_known
    async with await database.open(signing=signing) as ledger, await database.open() as other:
        first = await ledger.checkpoint()

        async def revoked_meanwhile(self, on_progress):
            await other.record_system(KeyRevoked, key_id=KEY.verifier.key_id, reason="LOST")
            return await confirm(self, on_progress)

        monkeypatch.setattr(Signer, "_confirm_known", revoked_meanwhile)
        with pytest.raises(RevokedKey):
            await ledger.checkpoint()
        assert (await stored(ledger)).size == first.claim.size


@pytest.mark.parametrize("said", [KeyRevoked, KeyRotated])
async def test_a_key_that_is_revoked_or_replaced_signs_nothing_more_wherever_it_is_open(database, signing, said):
    facts = {"key_id": KEY.verifier.key_id, "reason": "LOST"}
    if said is KeyRotated:
        facts = {**facts_of(OTHER.verifier), "replaced_key_id": KEY.verifier.key_id}
    async with await database.open(signing=signing) as ledger:
        first = await ledger.checkpoint()
        await ledger.record_system(said, **facts)
        with pytest.raises((RevokedKey, ReplacedKey)) as caught:
            await ledger.checkpoint()
        assert ledger.measures().signing.refused[caught.value.code] >= 1
        assert (await stored(ledger)).size == first.open(KEYS).size
    with pytest.raises(type(caught.value), match=KEY.verifier.key_id):
        await database.open(signing=signing)


async def test_whoever_has_the_ledger_open_signs_with_the_new_key_after_a_rotation(database, tmp_path):
    path, ids = tmp_path / "key", RandomIds()
    async with await database.open() as other:
        await create_key(other, path, ids, origin="log.example/1", actor=None)
        async with await database.open(signing=Signing(key=path)) as ledger:
            old = read_key_file(path).verifier
            assert (await ledger.checkpoint()).open([old])
            for origin in ("log.example/1", "log.example/2"):
                _, new = await rotate_key(other, path, ids, origin=origin, actor=None)
                assert (await ledger.checkpoint()).open([new]).origin == origin
            await record(ledger, ScriptedRun().start())
            assert (await ledger.receipt("session-1", "run-1")).verify([new], origin="log.example/2")
            await revoke_key(other, new.key_id, reason="LOST", actor=None)
            with pytest.raises(RevokedKey):
                await ledger.checkpoint()


async def test_a_restored_log_is_signed_under_an_origin_of_its_own(database, signing, anchor):
    async with await database.open(signing=signing) as ledger:
        before = (await ledger.checkpoint()).open(KEYS)
        # What the other one goes on to sign contradicts whatever comes here.
        ahead = Checkpoint("log.example/1", before.size + 1, bytes(32)).sign(KEY)
        anchor.append(ahead)
        for restore_id in ("restore-1", "restore-2"):
            await ledger.record_system(LedgerRestored, restore_id=restore_id, event_count=before.size)
            signed = (await ledger.checkpoint()).open(KEYS, origin=f"log.example/1/{restore_id}")
            assert (signed.size, signed.root) == await root_now(ledger)
    async with await database.open(signing=signing) as again:
        assert (await again.checkpoint()).open(KEYS).origin == "log.example/1/restore-2"


async def test_what_was_signed_before_it_was_restored_must_still_be_its_beginning(database, signing, anchor, plain):
    async with await database.open(signing=signing) as ledger:
        await record(ledger, ScriptedRun().start())
        await ledger.checkpoint()
        await ledger.record_system(LedgerRestored, restore_id="restore-1", event_count=1)
    anchor.path.unlink()
    outsider = lay_open(plain, "event", "checkpoint")
    outsider.execute("DELETE FROM checkpoint WHERE origin <> 'log.example/1'")
    outsider.execute(CHANGED)
    async with await database.open(signing=signing) as ledger:
        with pytest.raises(LogChanged):
            await ledger.checkpoint()


async def test_a_stored_checkpoint_that_the_key_has_not_signed_is_not_handed_out(database, signing, plain, anchor):
    async with await database.open(signing=signing) as ledger:
        first = await ledger.checkpoint()
    forged = [
        Checkpoint("log.example/1", first.claim.size, first.claim.root).sign(OTHER).note,
        Checkpoint("log.example/1", first.claim.size, bytes(32)).sign(KEY).note,
        "no note",
    ]
    outsider = lay_open(plain, "checkpoint")
    for note in forged:
        outsider.execute("UPDATE checkpoint SET note = ? WHERE size = ?", (note, first.claim.size))
        async with await database.open(signing=signing) as ledger:
            with pytest.raises(DamagedTree):
                await ledger.checkpoint()
    assert {note.note for note in anchor.notes()}.isdisjoint(forged)


async def test_of_two_copies_of_a_log_the_second_to_come_sees_what_the_first_has_anchored(signed, anchor):
    first = (await signed.checkpoint()).open(KEYS)
    await record(signed, ScriptedRun("run-2", writer_id="w2").start())
    await ordered(signed, 4)
    async with anchor.held():
        waiting = asyncio.ensure_future(signed.checkpoint())
        # It has looked at the log and at the anchor, and waits for its turn.
        await asyncio.sleep(0.2)
        anchor.append(Checkpoint("log.example/1", first.size + 1, bytes(32)).sign(KEY))
    with pytest.raises(LogChanged):
        await waiting


async def test_an_anchor_that_many_logs_share_is_read_to_its_beginning_at_first(database, signing, anchor):
    anchor.append(Checkpoint("log.example/1", 1, bytes(32)).sign(KEY))
    for size in range(600):
        anchor.append(Checkpoint("log.example/2", size, bytes(32)).sign(KEY))
    async with await database.open(signing=signing) as ledger:
        with pytest.raises(LogChanged):
            await ledger.checkpoint()


async def test_no_key_signs_under_the_name_of_another_ledger(database):
    with pytest.raises(InvalidKey, match="another ledger"):
        await database.open(signing=Signing(key=SigningKey("tachograph/another", bytes(32))))


async def test_a_key_that_others_may_read_is_refused(database, tmp_path):
    write_key_file(tmp_path / "key", KEY)
    (tmp_path / "key").chmod(0o640)
    with pytest.raises(KeyFileError, match="chmod 600"):
        await database.open(signing=Signing(key=tmp_path / "key"))
    (tmp_path / "key").chmod(0o600)
    async with await database.open(signing=Signing(key=tmp_path / "key")) as ledger:
        assert (await ledger.checkpoint()).open(KEYS)


async def test_a_receipt_proves_the_end_of_a_run_to_whoever_has_the_public_key(signed):
    for submission in ScriptedRun("run-2", writer_id="w2").whole():
        await record(signed, submission)
    receipt = await signed.receipt("session-1", "run-2")
    last = (await signed.reader.events("session-1", "run-2", 0, 500))[-1]
    assert (receipt.seq, receipt.link.hex()) == (last.seq, last.link)
    kept = Receipt.parse(receipt.text())
    assert kept == receipt
    assert kept.verify(KEYS, origin="log.example/1").size > receipt.proof.index
    with pytest.raises(InvalidProof):
        Receipt.parse(receipt.text().replace("extra ", "extra AAAA"))
    with pytest.raises(RunNotFound):
        await signed.receipt("session-2", "run-2")


async def test_a_receipt_waits_for_a_checkpoint_of_somebody_elses(database, signed):
    async with await database.open() as keyless:
        await record(keyless, ScriptedRun("run-2", writer_id="w2").start())
        waiting = asyncio.ensure_future(keyless.receipt("session-1", "run-2"))
        await signed.checkpoint()
        assert (await waiting).verify(KEYS)
        await record(keyless, ScriptedRun("run-3", writer_id="w3").start())
        with pytest.raises(NoCheckpoint):
            await keyless.receipt("session-1", "run-3", timeout_s=0.2)


async def test_a_receipt_is_given_of_no_event_that_the_checkpoint_does_not_have(signed, plain):
    run = ScriptedRun("run-2", writer_id="w2")
    await record(signed, run.start())
    await signed.checkpoint()
    lay_open(plain, "event").execute(CHANGED.replace("run-1", "run-2"))
    with pytest.raises(DamagedTree):
        await signed.receipt("session-1", "run-2")
