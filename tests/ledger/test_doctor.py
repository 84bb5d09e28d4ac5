"""What the doctor says of a ledger in a file, and of the machine that it is on."""

import sqlite3

import pytest

from ledger.copies.backup import back_up
from ledger.doctor import examine
from ledger.store import examining, sqlite
from ledger.store.examining import examine_sqlite
from tests.ledger.scripted import ScriptedRun


def advice_on(facts):
    return {fact.name: fact.advice for fact in facts if fact.advice is not None}


def test_the_rules_that_it_looks_for_are_those_of_a_new_ledger(plain):
    triggers = plain().execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
    assert {name for (name,) in triggers} == examining.TRIGGERS


@pytest.mark.parametrize(
    ("version", "has_fault"),
    [((3, 6, 23), False), ((3, 7, 0), True), ((3, 40, 1), True), ((3, 51, 2), True), ((3, 51, 3), False)],
)
def test_versions_of_sqlite_with_a_known_fault_are_named_with_what_keeps_clear_of_it(version, has_fault):
    fact = examining._engine(version)
    assert ("WAL-reset fault" in fact.value, fact.advice) == (has_fault, None)


def test_little_room_a_large_log_and_a_network_file_system_need_attention(path, monkeypatch):
    monkeypatch.setattr(examining, "FREE_WARN_BYTES", 2**62)
    monkeypatch.setattr(examining, "WAL_WARN_BYTES", -1)
    monkeypatch.setattr(examining, "file_system_of", lambda _: "nfs4")
    assert advice_on(examine_sqlite(path)).keys() == {"free_bytes", "wal_bytes", "file_system"}


def test_a_large_log_is_one_that_the_writer_warns_of_too():
    assert examining.WAL_WARN_BYTES == sqlite.WAL_WARN_BYTES > sqlite.WAL_TRUNCATE_BYTES


async def test_a_backup_is_told_from_a_ledger(path, tmp_path, monkeypatch):
    monkeypatch.setattr(examining, "FREE_WARN_BYTES", 0)
    await back_up(path, tmp_path / "b.db")
    assert "tachograph restore" in advice_on(await examine(tmp_path / "b.db"))["standing"]


async def test_it_changes_nothing_and_leaves_nothing(ledger, path):
    ledger.journal.submit(ScriptedRun().start()).result()
    before = sorted(file.name for file in path.parent.iterdir())
    connection = sqlite3.connect(path)
    version = connection.execute("PRAGMA data_version").fetchone()
    await examine(path)
    assert connection.execute("PRAGMA data_version").fetchone() == version
    connection.close()
    assert sorted(file.name for file in path.parent.iterdir()) == before
