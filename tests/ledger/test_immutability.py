"""Events cannot be changed by any connection that leaves the triggers on (SPEC E2)."""

import sqlite3

import pytest

from ledger import ConstraintViolated
from tests.ledger.scripted import ScriptedRun

COLUMNS = (
    "pos, stream_id, seq, event_id, type, version, session_id, run_id, occurred_us, recorded_us, body, body_hash, link"
)


@pytest.fixture
def recorded(ledger):
    """A whole run, and the beginning of another one."""
    for submission in ScriptedRun().whole():
        ledger.journal.submit(submission).result()
    ledger.journal.submit(ScriptedRun("run-2").start()).result()
    return ledger


@pytest.fixture
def outsider(recorded, plain):
    return plain()


def stored(connection):
    return connection.execute("SELECT * FROM event ORDER BY pos").fetchall()


def event_at(connection, pos):
    row = connection.execute(f"SELECT {COLUMNS} FROM event WHERE pos = ?", (pos,)).fetchone()
    return dict(zip(COLUMNS.split(", "), row, strict=True))


def insert(connection, row, verb="INSERT", rest=""):
    marks = ", ".join(f":{name}" for name in row)
    return connection.execute(f"{verb} INTO event ({', '.join(row)}) VALUES ({marks}) {rest}", row)


ATTACKS = {
    "update": "UPDATE event SET body = x'00' WHERE pos = 3",
    "update of nothing that matters": "UPDATE event SET recorded_us = recorded_us",
    "update of a position": "UPDATE event SET pos = pos + 100 WHERE pos = 3",
    "swap of two positions": "UPDATE event SET pos = 5 - pos WHERE pos IN (2, 3)",
    "update or replace of a position": "UPDATE OR REPLACE event SET pos = 2 WHERE pos = 3",
    "update or replace of a sequence": "UPDATE OR REPLACE event SET seq = 1 WHERE pos = 3",
    "update or ignore": "UPDATE OR IGNORE event SET body = x'00'",
    "delete": "DELETE FROM event WHERE pos = 3",
    "delete of the tail": "DELETE FROM event WHERE pos = (SELECT max(pos) FROM event)",
    "delete of everything": "DELETE FROM event",
    "delete of a stream": "DELETE FROM stream WHERE stream_id = 'r:run-2'",
    "a stream for someone else": "UPDATE stream SET session_id = 'session-2' WHERE stream_id = 'r:run-2'",
    "another name for a stream": "UPDATE stream SET stream_id = 'r:run-3', run_id = 'run-3' WHERE run_id = 'run-2'",
    "a head that goes back": "UPDATE stream SET head_seq = head_seq - 1 WHERE stream_id = 'r:run-1'",
    "a head that changes in place": "UPDATE stream SET head_link = zeroblob(32) WHERE stream_id = 'r:run-1'",
    "a head ahead of the events": "UPDATE stream SET head_seq = head_seq + 1 WHERE stream_id = 'r:run-2'",
    "a head far ahead": "UPDATE stream SET head_seq = 99, head_link = zeroblob(32) WHERE stream_id = 'r:run-2'",
    "another events head": "UPDATE stream SET (head_seq, head_link) ="
    " (SELECT seq, link FROM event WHERE run_id = 'run-1' AND seq = 2) WHERE stream_id = 'r:run-1'",
    "replace of a stream": "REPLACE INTO stream SELECT stream_id, kind, session_id, run_id, 1, zeroblob(32), NULL, 0"
    " FROM stream WHERE stream_id = 'r:run-1'",
    "another ledger id": "UPDATE ledger_meta SET value = 'x' WHERE key = 'ledger_id'",
    "replace of the ledger id": "INSERT OR REPLACE INTO ledger_meta VALUES ('ledger_id', 'x')",
    "no ledger id": "DELETE FROM ledger_meta WHERE key = 'ledger_id'",
    "another meaning of hashes": "UPDATE ledger_meta SET value = '2' WHERE key = 'hash_version'",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_plain_connection_cannot_change_what_is_recorded(outsider, attack):
    before = stored(outsider)
    with pytest.raises(sqlite3.IntegrityError):
        outsider.execute(attack)
    assert stored(outsider) == before


@pytest.mark.parametrize(
    "verb", ["REPLACE", "INSERT OR REPLACE", "INSERT OR IGNORE", "INSERT OR FAIL", "INSERT OR ROLLBACK"]
)
@pytest.mark.parametrize("same", ["pos", "seq", "event_id"])
def test_an_event_cannot_be_put_in_the_place_of_another(outsider, verb, same):
    before = stored(outsider)
    last = len(before)
    fresh = event_at(outsider, last) | {"body": b"{}", "pos": last + 1, "seq": 2, "event_id": "w9:1"}
    taken = {"pos": last, "seq": 1, "event_id": "w1:1"}
    with pytest.raises(sqlite3.IntegrityError):
        insert(outsider, fresh | {same: taken[same]}, verb)
    assert stored(outsider) == before


@pytest.mark.parametrize("target", ["pos", "stream_id, seq", "stream_id, event_id"])
def test_an_upsert_cannot_rewrite_an_event(outsider, target):
    before = stored(outsider)
    row = event_at(outsider, 3)
    with pytest.raises(sqlite3.IntegrityError):
        insert(outsider, row, rest=f"ON CONFLICT ({target}) DO UPDATE SET body = x'00'")
    assert stored(outsider) == before


def test_an_event_cannot_be_appended_with_a_gap(outsider):  # E5
    last = len(stored(outsider))
    fresh = event_at(outsider, last) | {"pos": last + 1, "event_id": "w9:1"}
    with pytest.raises(sqlite3.IntegrityError, match="event_sequence"):
        insert(outsider, fresh | {"seq": 3})
    with pytest.raises(sqlite3.IntegrityError, match="event_position"):
        insert(outsider, fresh | {"seq": 2, "pos": last + 2})
    with pytest.raises(sqlite3.IntegrityError, match="event_position"):
        insert(outsider, {name: value for name, value in fresh.items() if name != "pos"} | {"seq": 2})


def test_a_second_termination_is_refused_by_the_database(outsider):  # E6
    last = len(stored(outsider))
    end = outsider.execute("SELECT pos FROM event WHERE type = 'run.terminated'").fetchone()[0]
    seq = outsider.execute("SELECT max(seq) FROM event WHERE run_id = 'run-1'").fetchone()[0]
    second = event_at(outsider, end) | {"pos": last + 1, "seq": seq + 1, "event_id": "w9:1"}
    with pytest.raises(sqlite3.IntegrityError, match="run_terminated"):
        insert(outsider, second)


def test_work_after_the_termination_is_refused_by_the_database(outsider):  # E6
    last = len(stored(outsider))
    seq = outsider.execute("SELECT max(seq) FROM event WHERE run_id = 'run-1'").fetchone()[0]
    row = event_at(outsider, 3) | {"pos": last + 1, "seq": seq + 1, "event_id": "w9:1"}
    for late in ("attempt.finished_late", "usage.settled", "content.erased"):
        insert(outsider, row | {"type": late})
        row |= {"pos": row["pos"] + 1, "seq": row["seq"] + 1, "event_id": f"w9:{row['seq']}"}
    for work in ("attempt.started", "attempt.succeeded", "cancellation.requested", "graph.transitioned"):
        with pytest.raises(sqlite3.IntegrityError, match="run_terminated"):
            insert(outsider, row | {"type": work})


def test_the_triggers_hold_with_foreign_keys_and_recursive_triggers_in_either_state(outsider):
    before = stored(outsider)
    for pragma in ("foreign_keys", "recursive_triggers"):
        for state in ("ON", "OFF"):
            outsider.execute(f"PRAGMA {pragma} = {state}")
            with pytest.raises(sqlite3.IntegrityError):
                insert(outsider, event_at(outsider, 3) | {"body": b"{}"}, "REPLACE")
    assert stored(outsider) == before


def test_what_the_database_refuses_is_our_error_with_the_rule_it_broke(recorded):
    def spoil(batch):
        batch.connection.execute("UPDATE event SET body = x'00' WHERE pos = 1")

    error = recorded.journal.run(spoil).exception()
    assert isinstance(error, ConstraintViolated)
    assert (error.rule, error.detail) == ("event_immutable", "an event is never changed")
