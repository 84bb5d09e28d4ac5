"""Keys: made outside the database, recorded in it, replaced and revoked, and nowhere shown (SPEC E9)."""

import json
import os
import stat

import pytest
from click.testing import CliRunner

from harness.errors import InvalidInput
from harness.events import KeyRotated
from harness.ids import RandomIds
from ledger.audit.errors import InvalidKey, KeyFileError, KeyNotFound
from ledger.audit.notes.checkpoint import SignedCheckpoint
from ledger.audit.notes.notes import SigningKey, VerifierKey
from ledger.audit.signing import keyring
from ledger.audit.signing.keyring import create_key, public_keys, revoke_key, rotate_key
from ledger.audit.signing.keys import known_keys, read_key_file, write_key_file
from tests.ledger import commands as cli

IDS = RandomIds()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "the.key"


async def states(ledger):
    return {key.key_id: key.state for key in (await known_keys(ledger.reader)).values()}


async def test_a_key_is_made_once_for_its_owner_alone(ledger, path):
    made = await create_key(ledger, path, IDS, origin=None, actor="op-1")
    assert made.name == f"tachograph/{await ledger.reader.ledger_id()}"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_key_file(path).verifier == made
    assert await states(ledger) == {made.key_id: "in use"}
    before = path.read_bytes()
    with pytest.raises(KeyFileError, match="never overwritten"):
        await create_key(ledger, path, IDS, origin=None, actor=None)
    assert path.read_bytes() == before
    (event,) = await ledger.reader.system_events()
    secret = read_key_file(path).secret().split("+", 4)[4]
    assert secret not in json.dumps(event.fields)


async def test_a_key_that_lies_there_is_not_taken_for_this_ledger_whatever_its_name(ledger, path):
    for name in ("log.example/1", f"tachograph/{await ledger.reader.ledger_id()}"):
        path.unlink(missing_ok=True)
        write_key_file(path, SigningKey(name, bytes(32)))
        with pytest.raises(KeyFileError, match="never overwritten"):
            await create_key(ledger, path, IDS, origin=name, actor=None)
    os.link(path, path.with_name("the.key.new"))
    with pytest.raises(KeyFileError, match="never overwritten"):
        await create_key(ledger, path, IDS, origin=None, actor=None)
    assert [file.name for file in path.parent.glob("the.key*")] == ["the.key"]
    assert await states(ledger) == {}


async def test_no_log_is_called_as_another_ledgers_is_or_so_that_no_room_is_left(ledger, path):
    for name in ("tachograph/another", "x" * 161, "l\N{LATIN SMALL LETTER O WITH DIAERESIS}g", "log\x7f"):
        with pytest.raises(InvalidKey):
            await create_key(ledger, path, IDS, origin=name, actor=None)
        assert not list(path.parent.glob("the.key*"))
    await create_key(ledger, path, IDS, origin="x" * 160, actor=None)
    with pytest.raises(InvalidKey):
        await rotate_key(ledger, path, IDS, origin="tachograph/another", actor=None)


async def test_who_did_it_and_why_are_looked_at_before_anything_is_made(ledger, path):
    with pytest.raises(InvalidInput, match="actor"):
        await create_key(ledger, path, IDS, origin=None, actor="x" * 1_000)
    assert not list(path.parent.glob("the.key*"))
    made = await create_key(ledger, path, IDS, origin=None, actor=None)
    with pytest.raises(InvalidInput, match="actor"):
        await rotate_key(ledger, path, IDS, origin=None, actor="")
    with pytest.raises(InvalidInput, match="reason"):
        await revoke_key(ledger, made.key_id, reason="it was lost", actor=None)
    assert [file.name for file in path.parent.glob("the.key*")] == ["the.key"]
    assert await states(ledger) == {made.key_id: "in use"}


async def test_a_rotation_keeps_the_public_half_of_what_it_replaces(ledger, path):
    first = await create_key(ledger, path, IDS, origin="log.example/1", actor=None)
    old, second = await rotate_key(ledger, path, IDS, origin=None, actor=None)
    assert (old, second.name) == (first, "log.example/1")
    _, third = await rotate_key(ledger, path, IDS, origin="log.example/2", actor=None)
    assert third.name == "log.example/2"
    assert public_keys(path) == [third, second, first]
    assert await states(ledger) == {first.key_id: "replaced", second.key_id: "replaced", third.key_id: "in use"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(file.name for file in path.parent.glob("the.key*")) == ["the.key", "the.key.retired"]


@pytest.mark.parametrize("step", ["_retire", "_say", "_put", "_move"])
async def test_what_a_crash_left_half_done_is_finished_by_doing_it_again(ledger, path, monkeypatch, step):
    class Crash(Exception):
        pass

    def crash(*_, **__):
        raise Crash

    with monkeypatch.context() as patched:
        if step in ("_say", "_put"):
            patched.setattr(keyring, step, crash)
            with pytest.raises(Crash):
                await create_key(ledger, path, IDS, origin=None, actor=None)
            assert not path.exists()
    if step == "_say":
        assert await states(ledger) == {}
    first = await create_key(ledger, path, IDS, origin=None, actor=None)
    with monkeypatch.context() as patched:
        patched.setattr(keyring, "_move" if step == "_put" else step, crash)
        with pytest.raises(Crash):
            await rotate_key(ledger, path, IDS, origin=None, actor=None)
    assert read_key_file(path).verifier == first
    with pytest.raises(KeyFileError, match="was not finished"):
        await rotate_key(ledger, path, IDS, origin="log.example/2", actor=None)
    _, second = await rotate_key(ledger, path, IDS, origin=None, actor=None)
    assert public_keys(path) == [second, first]
    assert await states(ledger) == {first.key_id: "replaced", second.key_id: "in use"}
    events = await ledger.reader.system_events()
    assert [event.type for event in events] == ["key.created", KeyRotated.model_fields["type"].default]


async def test_a_key_is_revoked_once(ledger, path):
    made = await create_key(ledger, path, IDS, origin=None, actor=None)
    assert await revoke_key(ledger, made.key_id, reason="LOST", actor="op-1")
    assert not await revoke_key(ledger, made.key_id, reason="LOST", actor="op-1")
    assert await states(ledger) == {made.key_id: "revoked"}
    with pytest.raises(KeyNotFound):
        await revoke_key(ledger, "00000000", reason="LOST", actor=None)


@pytest.mark.parametrize("text", ["", "x", "PRIVATE+KEY+a+b+c", "x" * 5_000, "\ud800"])
async def test_a_file_that_is_no_key_is_refused_and_never_quoted(path, text):
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    path.chmod(0o600)
    with pytest.raises(KeyFileError) as caught:
        read_key_file(path)
    assert not text or text not in str(caught.value) or text == "x"


async def test_who_may_read_a_key_is_looked_at_before_it_is_used(path, tmp_path):
    write_key_file(path, SigningKey("log.example", bytes(32)))
    for mode in (0o604, 0o640, 0o620, 0o660, 0o644):
        path.chmod(mode)
        with pytest.raises(KeyFileError, match="chmod 600"):
            read_key_file(path)
    path.chmod(0o400)
    assert read_key_file(path).name == "log.example"
    with pytest.raises(KeyFileError, match="key create"):
        read_key_file(tmp_path / "none")
    with pytest.raises(KeyFileError, match="cannot be read"):
        read_key_file(tmp_path)
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(KeyFileError, match="no file of a key"):
        read_key_file(tmp_path / "pipe")
    with pytest.raises(KeyFileError, match="cannot be made"):
        write_key_file(tmp_path / "no" / "folder", SigningKey("log.example", bytes(32)))


def test_by_commands_a_key_signs_what_its_public_half_opens(database, tmp_path):
    def call(command, *args, exit_code=0):
        done = CliRunner().invoke(command, [*args, "--db", database.url], env={"TACHOGRAPH_KEY": str(tmp_path / "key")})
        assert done.exit_code == exit_code, done.output
        return done.output

    assert "key create" in call(cli.checkpoint, exit_code=2)
    made = json.loads(call(cli.key, "create", "--origin", "log.example/1", "--json"))
    public = call(cli.key, "export")
    assert public == f"{made['public_key']}\n"
    note = call(cli.checkpoint)
    assert SignedCheckpoint(note).open([VerifierKey.parse(public.strip())]).origin == "log.example/1"
    out, anchor = tmp_path / "checkpoint", tmp_path / "anchor"
    assert "signed 1 event of log.example/1" in call(cli.checkpoint, "-o", str(out), "--anchor", str(anchor))
    assert out.read_text() == note
    assert anchor.read_text() == f"{note}\n"
    assert json.loads(call(cli.checkpoint, "--json"))["note"] == note
    call(cli.key, "rotate", "--origin", "log.example/2")
    assert call(cli.key, "export", "--all").splitlines()[1] == public.strip()
    assert [key["state"] for key in json.loads(call(cli.key, "list", "--json"))] == ["replaced", "in use"]
    assert "revoked" in call(cli.key, "revoke", made["key_id"])
    assert "revoked" in call(cli.key, "list")
    call(cli.key, "revoke", "00000000", exit_code=1)
    anchor.write_text(anchor.read_text().replace("\n1\n", "\n999\n"))
    assert "nothing was signed" in call(
        cli.checkpoint, "--origin", "log.example/1", "--anchor", str(anchor), exit_code=1
    )


@pytest.mark.parametrize("victim", ["key", "ledger.db", "kept.checkpoint"])
def test_what_is_written_for_others_overwrites_nothing(database, tmp_path, victim):
    env = {"TACHOGRAPH_KEY": str(tmp_path / "key"), "TACHOGRAPH_DB": database.url}
    assert CliRunner().invoke(cli.key, ["create"], env=env).exit_code == 0
    (tmp_path / "ledger.db").touch()
    (tmp_path / "kept.checkpoint").write_text("what was kept")
    before = (tmp_path / victim).read_bytes()
    for command, *arguments in ((cli.key, "export"), (cli.checkpoint,)):
        done = CliRunner().invoke(command, [*arguments, "-o", str(tmp_path / victim)], env=env)
        assert (done.exit_code, "nothing is overwritten" in done.output) == (2, True), done.output
    assert (tmp_path / victim).read_bytes() == before
