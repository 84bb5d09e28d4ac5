"""What can be wrong with a ledger's address or file: a clear error, and nothing changed or made."""

import asyncio
import contextlib
import os
import sqlite3
import threading
from pathlib import Path

import pytest

from harness.clock import ManualClock
from harness.errors import InvalidInput, LedgerUnavailable
from ledger import (
    Ledger,
    LedgerMissing,
    LedgerNotMigrated,
    LedgerReader,
    LedgerTooNew,
    LedgerUnreadable,
    NetworkFileSystem,
    NotALedger,
    Page,
    UnsupportedUrl,
)
from ledger.migrate import ensure_current, lock_of
from ledger.store.lock import FileLock
from ledger.store.place import check_file_system, path_of
from tests.ledger.blank import blank_at
from tests.ledger.scripted import ScriptedRun


def state_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.iterdir() if file.is_file()}


def write_database(path, *statements):
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def make_text(path):
    path.write_text("this is no database, but a letter")


def make_garbage(path):
    path.write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 30)


def make_foreign(path):
    write_database(path, "CREATE TABLE customer (name TEXT)", "INSERT INTO customer VALUES ('Ann')")


def make_foreign_with_migrations(path):
    write_database(path, "CREATE TABLE alembic_version (version_num)", "INSERT INTO alembic_version VALUES ('0001')")


def make_foreign_wal(path):
    write_database(path, "PRAGMA journal_mode = WAL", "CREATE TABLE customer (name TEXT)")


def make_newer_format(path):
    write_database(blank_at(path), "UPDATE ledger_meta SET value = '2' WHERE key = 'format_version'")


def make_newer_schema(path):
    write_database(blank_at(path), "UPDATE alembic_version SET version_num = '0099'")


UNUSABLE = {
    "a text": (make_text, NotALedger),
    "garbage": (make_garbage, NotALedger),
    "another database": (make_foreign, NotALedger),
    "another database with migrations": (make_foreign_with_migrations, NotALedger),
    "another database in WAL mode": (make_foreign_wal, NotALedger),
    "a folder": (Path.mkdir, NotALedger),
    "a pipe": (os.mkfifo, NotALedger),
    "a newer format": (make_newer_format, LedgerTooNew),
    "a newer schema": (make_newer_schema, LedgerTooNew),
    "a link in circles": (lambda path: path.symlink_to(path), LedgerUnreadable),
}


@pytest.mark.parametrize("opener", [Ledger, LedgerReader])
@pytest.mark.parametrize(("make", "error"), UNUSABLE.values(), ids=UNUSABLE)
async def test_a_file_that_cannot_be_used_is_named_and_left_alone(tmp_path, make, error, opener):
    path = tmp_path / "runs.db"
    make(path)
    before = {} if error is LedgerUnreadable else state_of(tmp_path)
    with pytest.raises(error) as caught:
        await opener.open(path)
    assert caught.value.place == path
    assert "\n" not in str(caught.value)
    after = {} if error is LedgerUnreadable else state_of(tmp_path)
    assert after == before


async def test_a_ledger_has_one_lock_and_one_log_whatever_name_it_is_opened_by(path, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(path)
    async with await Ledger.open(path) as owner:
        owner.journal.submit(ScriptedRun().start()).result()
        async with await Ledger.open(link) as other, await LedgerReader.open(link) as reader:
            for one in (other.reader, reader):
                assert (await one.trace("session-1", "run-1")).run.summary.status == "RUNNING"
    assert [file.name for file in link.parent.iterdir()] == ["link.db"]


@pytest.mark.parametrize("opener", [Ledger, LedgerReader])
@pytest.mark.parametrize("make", [blank_at, Path.touch])
async def test_a_file_of_two_names_is_refused_under_both(tmp_path, make, opener):
    make(tmp_path / "a.db")
    (tmp_path / "b.db").hardlink_to(tmp_path / "a.db")
    for name in ("a.db", "b.db"):
        with pytest.raises(LedgerUnreadable, match="has 2 names"):
            await opener.open(tmp_path / name)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.db", "b.db"]


async def test_a_reader_makes_no_file(tmp_path):
    with pytest.raises(LedgerMissing):
        await LedgerReader.open(tmp_path / "runs.db")
    (tmp_path / "empty.db").touch()
    with pytest.raises(NotALedger):
        await LedgerReader.open(tmp_path / "empty.db")
    assert [file.name for file in tmp_path.iterdir()] == ["empty.db"]


async def test_a_reader_refuses_an_older_schema_and_says_what_to_do(tmp_path):
    lock = lock_of(tmp_path / "runs.db")
    ensure_current(tmp_path / "runs.db", lock, revision="0001")
    lock.close()
    with pytest.raises(LedgerNotMigrated, match="tachograph migrate"):
        await LedgerReader.open(tmp_path / "runs.db")


async def test_an_empty_file_becomes_a_ledger(tmp_path):
    (tmp_path / "runs.db").touch()
    async with await Ledger.open(tmp_path / "runs.db") as ledger:
        assert (await ledger.reader.recent_runs()).rows == ()


async def test_a_ledger_whose_making_was_interrupted_is_made_now(tmp_path):
    write_database(tmp_path / "runs.db", "PRAGMA journal_mode = WAL")
    assert (tmp_path / "runs.db").stat().st_size > 0
    async with await Ledger.open(tmp_path / "runs.db") as ledger:
        assert (await ledger.reader.recent_runs()).rows == ()


@pytest.mark.parametrize("opener", [Ledger, LedgerReader])
async def test_a_ledger_of_which_nothing_was_checkpointed_is_recognized(tmp_path, opener):
    lock = lock_of(tmp_path / "a.db")
    reader = sqlite3.connect(tmp_path / "a.db")
    reader.execute("PRAGMA journal_mode = WAL")
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM sqlite_schema").fetchall()  # as long as this lasts nothing can be checkpointed
    ensure_current(tmp_path / "a.db", lock)
    for side in ("", "-wal"):
        (tmp_path / f"b.db{side}").write_bytes((tmp_path / f"a.db{side}").read_bytes())
    reader.close()
    lock.close()
    assert (tmp_path / "b.db").stat().st_size <= 4096
    async with await opener.open(tmp_path / "b.db") as opened:
        assert (await getattr(opened, "reader", opened).recent_runs()).rows == ()


async def test_folders_are_made_for_a_new_ledger(tmp_path):
    async with await Ledger.open(f"sqlite:///{tmp_path}/some/where/runs.db"):
        assert (tmp_path / "some" / "where" / "runs.db").exists()


async def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    for opener in (Ledger, LedgerReader):
        with pytest.raises(LedgerUnreadable):
            await opener.open(tmp_path / "file" / "runs.db")


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:////var/lib/runs.db", Path("/var/lib/runs.db")),
        ("sqlite:///runs.db", Path.cwd() / "runs.db"),
        ("runs.db", Path.cwd() / "runs.db"),
        (Path("/a/b c%20d#e.db"), Path("/a/b c%20d#e.db")),
    ],
)
def test_an_address_is_a_url_or_a_path(url, path):
    assert path_of(url) == path


@pytest.mark.parametrize(
    "url",
    [
        "",
        "sqlite://",
        "sqlite:///",
        ":memory:",
        "sqlite:///:memory:",
        "postgresql://host/db",
        "sqlite:///a?mode=ro",
        "a\0b",
    ],
)
def test_an_address_that_names_no_file_is_refused(url):
    with pytest.raises(UnsupportedUrl):
        path_of(url)


@pytest.mark.parametrize(
    "name", ["r u n s.db", "100%.db", "a#b.db", "ünï🛑.db", "a'b.db", "-r.db", "not-utf-8-\udcff.db"], ids=ascii
)
async def test_a_file_may_have_any_name(tmp_path, name):
    blank_at(tmp_path / name)
    async with await Ledger.open(tmp_path / name) as ledger:
        await ledger.open_session("session-1")
        assert (await ledger.reader.session("session-1")).session_id == "session-1"
    async with await LedgerReader.open(tmp_path / name) as reader:
        await reader.session("session-1")


MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/export /mnt/shared\\040files nfs4 rw 0 0
/dev/sdb1 /mnt/shared\\040files/local ext4 rw 0 0
//nas/x /mnt/nas cifs rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "refused"),
    [("/mnt/shared files/a", "nfs4"), ("/mnt/nas", "cifs"), ("/mnt/shared files/local", None), ("/srv", None)],
)
def test_a_network_file_system_is_refused_by_name(tmp_path, folder, refused):
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    path = Path(folder) / "runs.db"
    if refused is None:
        check_file_system(path, mounts)
        return
    with pytest.raises(NetworkFileSystem) as caught:
        check_file_system(path, mounts)
    assert caught.value.file_system == refused


def test_without_a_list_of_mounts_no_file_system_is_refused(tmp_path):
    check_file_system(tmp_path / "runs.db", tmp_path / "missing")


@pytest.mark.parametrize("ttl_s", [0, -1, True, float("inf"), float("nan"), 1e12], ids=repr)
async def test_a_time_to_live_is_a_number_of_seconds_that_makes_sense(path, ttl_s):
    with pytest.raises(InvalidInput):
        await Ledger.open(path, session_ttl_s=ttl_s)


async def test_a_lock_that_another_process_keeps_is_an_error_in_time_and_harms_nothing(path):
    async with await Ledger.open(path, lock_timeout_s=0.05) as ledger:
        other = FileLock(Path(f"{path}.lock"))
        other.acquire(1.0)
        run = ScriptedRun()
        error = ledger.journal.submit(run.start()).exception()
        assert isinstance(error, LedgerUnavailable)
        assert "has held runs.db.lock for 0.05 s" in str(error)
        other.release()
        other.close()
        resumed = run.submission(*run.start().events, resumes=True)
        assert ledger.journal.submit(resumed).result().first_seq == 1


async def test_a_clock_before_1970_is_an_error_and_stores_nothing(path, plain):
    with pytest.raises(LedgerUnreadable, match="before 1970"):
        await Ledger.open(path, wall_clock=ManualClock(wall_us=-1))
    clock = ManualClock()
    async with await Ledger.open(path, wall_clock=clock) as ledger:
        clock.wall_us = -1
        error = ledger.journal.submit(ScriptedRun().start()).exception()
        assert isinstance(error, LedgerUnavailable)
        assert plain().execute("SELECT count(*) FROM event").fetchone() == (0,)


async def test_a_ledger_that_cannot_be_written_is_an_error_and_leaves_nothing_open(path):
    path.with_name("runs.db.owners").write_text("in the way")
    for _ in range(3):
        with pytest.raises(LedgerUnreadable, match="cannot be opened"):
            await Ledger.open(path)
    assert open_files(path) == []


async def test_many_ledgers_may_be_open_on_one_file(path):
    ledgers = [await Ledger.open(path) for _ in range(5)]
    for number, ledger in enumerate(ledgers):
        for submission in ScriptedRun(f"run-{number}", writer_id=f"w{number}").whole():
            ledger.journal.submit(submission).result()
    assert len((await ledgers[0].reader.recent_runs()).rows) == 5
    for ledger in ledgers:
        await ledger.close()


async def test_closing_checkpoints_so_that_the_file_alone_is_the_ledger(path, tmp_path):
    async with await Ledger.open(path) as ledger:
        for submission in ScriptedRun().whole():
            ledger.journal.submit(submission).result()
    copy = tmp_path / "copy.db"
    copy.write_bytes(path.read_bytes())
    async with await LedgerReader.open(copy) as reader:
        assert len((await reader.recent_runs()).rows) == 1


async def test_a_ledger_that_was_opened_in_vain_is_closed_again(path):  # CASES 37
    before = open_files(path)
    for _ in range(5):
        opening = asyncio.create_task(Ledger.open(path))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
    async with asyncio.timeout(30):
        while open_files(path) != before or path.with_name("runs.db.owners").exists():
            await asyncio.sleep(0.01)


async def test_closing_that_was_cancelled_goes_on_and_can_be_waited_for(path):  # CASES 37
    ledger, gate = await Ledger.open(path), threading.Event()
    ledger.journal.run(lambda _: gate.wait(30))
    last = ledger.journal.submit(ScriptedRun().start())
    read = asyncio.create_task(ledger.reader.recent_runs())
    async with asyncio.timeout(10):
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(ledger.close(), 0.02)
    gate.set()
    await ledger.close()
    assert last.result(0).first_seq == 1
    assert isinstance(await read, Page)
    assert open_files(path) == []
    assert sorted(file.name for file in path.parent.iterdir()) == ["runs.db", "runs.db.lock"]


def open_files(path):
    """What this process has open of a ledger."""
    links = []
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread may close what it has open meanwhile
            links.append(str(entry.readlink()))
    return sorted(link for link in links if link.startswith(str(path)))
