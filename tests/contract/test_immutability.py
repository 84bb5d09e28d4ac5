"""Events cannot be changed by any connection that leaves the triggers on (SPEC E2)."""

import pytest

from harness.events import ACCEPTED_AFTER_TERMINATION, EVENT_TYPES
from tests.contract.databases import Refused, refused, stored
from tests.ledger.future import COLUMNS, add_event
from tests.ledger.scripted import ScriptedRun

TABLES = ("event", "stream", "ledger_meta")
RULES = r"immutable|permanent|stream_head|stream_owner|isolation|exists|duplicate key|can only be updated to DEFAULT"
"""What an attack fails by; it does not count that it is badly spelt."""
LAST = "(SELECT max(pos) FROM event)"


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


def in_sql(outsider, attack):
    """The attack in the database's own words."""
    if outsider.dialect == "postgresql":
        zeros = f"'\\x{'00' * 32}'::bytea"
        return attack.replace("zeroblob(32)", zeros).replace("x'00'", "'\\x00'::bytea")
    return attack


ATTACKS = {
    "update": "UPDATE event SET body = x'00' WHERE seq = 3",
    "update of nothing that matters": "UPDATE event SET recorded_us = recorded_us",
    "update of a position": "UPDATE event SET pos = pos + 100 WHERE seq = 3",
    "update of a sequence": "UPDATE event SET seq = seq + 100",
    "update that moves an event to another run": "UPDATE event SET run_id = 'run-2', stream_id = 'r:run-2'",
    "update through a join": "UPDATE event SET body = x'00' FROM stream WHERE stream.stream_id = event.stream_id",
    "delete": "DELETE FROM event WHERE seq = 3",
    "delete of the tail": f"DELETE FROM event WHERE pos = {LAST}",
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
    "an epoch that goes back": "UPDATE stream SET owner_epoch = 0",
    "an epoch that fences the owner": "UPDATE stream SET owner_epoch = owner_epoch + 1 WHERE stream_id = 'r:run-2'",
    "another owner": "UPDATE stream SET owner_id = 'w-other' WHERE stream_id = 'r:run-2'",
    "no owner": "UPDATE stream SET owner_id = NULL WHERE stream_id = 'r:run-2'",
    "an owner for what has ended": "UPDATE stream SET owner_id = 'w-other', owner_epoch = 2 WHERE run_id = 'run-1'",
    "another ledger id": "UPDATE ledger_meta SET value = 'x' WHERE key = 'ledger_id'",
    "another name for the ledger id": "UPDATE ledger_meta SET key = 'x' WHERE key = 'ledger_id'",
    "a second ledger id": "INSERT INTO ledger_meta VALUES ('ledger_id', 'x')",
    "an upsert of the ledger id": "INSERT INTO ledger_meta VALUES ('ledger_id', 'x')"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    "no ledger id": "DELETE FROM ledger_meta WHERE key = 'ledger_id'",
    "another meaning of hashes": "UPDATE ledger_meta SET value = '2' WHERE key = 'hash_version'",
}
SQLITE_ATTACKS = {
    "swap of two positions": "UPDATE event SET pos = 5 - pos WHERE pos IN (2, 3)",
    "update or replace of a position": "UPDATE OR REPLACE event SET pos = 2 WHERE pos = 3",
    "update or replace of a sequence": "UPDATE OR REPLACE event SET seq = 1 WHERE pos = 3",
    "update or ignore": "UPDATE OR IGNORE event SET body = x'00'",
    "replace of a stream": "REPLACE INTO stream SELECT stream_id, kind, session_id, run_id, 1, zeroblob(32), NULL, 0"
    " FROM stream WHERE stream_id = 'r:run-1'",
    "replace of the ledger id": "INSERT OR REPLACE INTO ledger_meta VALUES ('ledger_id', 'x')",
}
POSTGRES_ATTACKS = {
    "truncate": "TRUNCATE event",
    "truncate of everything": "TRUNCATE stream CASCADE",
    "truncate of the identity": "TRUNCATE ledger_meta",
    "update of only this table": "UPDATE ONLY event SET body = x'00'",
    "update in a common table expression": "WITH gone AS (UPDATE event SET body = x'00' RETURNING 1) SELECT 1",
    "delete in a common table expression": "WITH gone AS (DELETE FROM event RETURNING pos) SELECT count(*) FROM gone",
    "merge that updates": "MERGE INTO event USING stream ON event.stream_id = stream.stream_id"
    " WHEN MATCHED THEN UPDATE SET body = x'00'",
    "merge that deletes": "MERGE INTO event USING stream ON event.stream_id = stream.stream_id"
    " WHEN MATCHED THEN DELETE",
    "delete with a join": "DELETE FROM event USING stream WHERE stream.stream_id = event.stream_id",
    "a new stream without an event": "INSERT INTO stream VALUES"
    " ('r:run-9', 'run', 'session-1', 'run-9', 1, zeroblob(32), NULL, 1)",
    "a replica's session that updates": "SET session_replication_role = replica;"
    " UPDATE event SET body = x'00' WHERE seq = 3",
    "a replica's session that deletes": "SET session_replication_role = replica; DELETE FROM event",
    "a replica's session that truncates": "SET session_replication_role = replica; TRUNCATE event",
    "a replica's session that moves a head": "SET session_replication_role = replica;"
    " UPDATE stream SET head_seq = 99 WHERE stream_id = 'r:run-2'",
    "a replica's session that mixes sessions": "SET session_replication_role = replica;"
    " UPDATE diagnosis_run SET session_id = 'session-2'",
    "a function that does it": "CREATE FUNCTION pg_temp.gone() RETURNS void LANGUAGE sql SECURITY DEFINER"
    " AS 'DELETE FROM event'; SELECT pg_temp.gone()",
    "a prepared statement": "PREPARE gone AS DELETE FROM event; EXECUTE gone",
    "a block": "DO 'BEGIN DELETE FROM event; END'",
    "a view": "CREATE TEMP VIEW mine AS SELECT * FROM event; DELETE FROM mine",
    "a cursor": "DO 'DECLARE c CURSOR FOR SELECT * FROM event FOR UPDATE; r event; BEGIN OPEN c; FETCH c INTO r;"
    " DELETE FROM event WHERE CURRENT OF c; END'",
    "tables of the same names before": "CREATE TEMP TABLE event (LIKE event); CREATE TEMP TABLE stream (LIKE stream);"
    " DELETE FROM public.event",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_plain_connection_cannot_change_what_is_recorded(outsider, attack):
    with refused(outsider, TABLES, RULES):
        outsider.execute(in_sql(outsider, attack))


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("attack", SQLITE_ATTACKS.values(), ids=SQLITE_ATTACKS)
def test_nor_can_it_in_the_words_of_sqlite(outsider, attack):
    with refused(outsider, TABLES, RULES):
        outsider.execute(attack)


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
@pytest.mark.parametrize("attack", POSTGRES_ATTACKS.values(), ids=POSTGRES_ATTACKS)
def test_nor_can_it_in_the_words_of_postgresql_even_as_superuser(outsider, plain, attack):
    with refused(outsider, TABLES, RULES):
        plain().script(in_sql(outsider, attack))


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_a_replicas_session_cannot_add_what_does_not_belong(outsider):  # E4, E5
    outsider.execute("SET session_replication_role = replica")
    for given, rule in (
        ({"session_id": "session-2"}, "isolation"),
        ({"seq": 99}, "event_sequence"),
        ({"type": "attempt.started"}, "run_terminated"),
    ):
        with pytest.raises(Refused, match=rule):
            add_event(outsider, "r:run-1", **given)


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_checks_look_at_the_ledgers_tables_whatever_the_search_path_says(outsider):  # E4
    for table in ("event", "stream"):
        outsider.execute(f"CREATE TEMP TABLE {table} AS SELECT * FROM public.{table}")
    outsider.execute("UPDATE pg_temp.stream SET session_id = 'session-2'")
    outsider.execute("SET search_path = pg_temp, public")
    with pytest.raises(Refused, match="isolation"):
        outsider.execute(
            "WITH head AS (UPDATE public.stream SET head_seq = head_seq + 1 WHERE run_id = 'run-2' RETURNING *)"
            " INSERT INTO public.event (stream_id, seq, event_id, type, version, session_id, run_id, occurred_us,"
            " recorded_us, body, body_hash, link) SELECT stream_id, head_seq, 'w9:1', 'x', 1, 'session-2', run_id,"
            " 1, 1, '', head_link, head_link FROM head"
        )


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_an_event_comes_with_the_head_of_its_stream_or_not_at_all(outsider):  # E5
    columns = ", ".join(COLUMNS)
    given = columns.replace("seq", "2").replace("event_id", "'w9:1'")
    with pytest.raises(Refused, match="event_head"):
        outsider.execute(f"INSERT INTO event ({columns}) SELECT {given} FROM event WHERE run_id = 'run-2'")


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
@pytest.mark.parametrize(
    ("column", "value"), [("pos", "1"), ("xid", "'3'")], ids=["a position", "a transaction's number"]
)
def test_what_the_server_counts_cannot_be_chosen(outsider, column, value):
    columns = ", ".join(COLUMNS)
    given = columns.replace("seq", "2").replace("event_id", "'w9:1'").replace("stream_id", "event.stream_id")
    with pytest.raises(Refused, match=r"event_transaction|non-DEFAULT"):
        outsider.execute(
            "WITH head AS (UPDATE stream SET head_seq = 2 WHERE stream_id = 'r:run-2')"
            f" INSERT INTO event ({columns}, {column}) SELECT {given}, {value} FROM event WHERE run_id = 'run-2'"
        )


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "verb", ["REPLACE", "INSERT OR REPLACE", "INSERT OR IGNORE", "INSERT OR FAIL", "INSERT OR ROLLBACK"]
)
@pytest.mark.parametrize("same", ["pos", "seq", "event_id"])
def test_an_event_cannot_be_put_in_the_place_of_another(outsider, verb, same):
    last = len(stored(outsider, TABLES)[0])
    fresh = event_at(outsider, last) | {"body": b"{}", "pos": last + 1, "seq": 2, "event_id": "w9:1"}
    taken = {"pos": last, "seq": 1, "event_id": "w1:1"}
    with refused(outsider, TABLES):
        insert(outsider, fresh | {same: taken[same]}, verb)


@pytest.mark.parametrize("target", ["pos", "stream_id, seq", "stream_id, event_id"])
def test_an_upsert_cannot_rewrite_an_event(outsider, target):
    columns = ", ".join(["pos", *COLUMNS])
    overriding = "OVERRIDING SYSTEM VALUE" if outsider.dialect == "postgresql" else ""
    with refused(outsider, TABLES):
        outsider.execute(
            f"INSERT INTO event ({columns}) {overriding} SELECT {columns} FROM event WHERE pos = {LAST}"
            f" ON CONFLICT ({target}) DO UPDATE SET type = 'x'"
        )


def test_an_event_cannot_be_appended_with_a_gap(outsider):  # E5
    for seq in (0, 3):
        with pytest.raises(Refused, match=r"event_sequence|stream_head"):
            add_event(outsider, "r:run-2", seq=seq)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_position_cannot_be_chosen_or_left_out(outsider):
    last = len(stored(outsider, TABLES)[0])
    fresh = event_at(outsider, last) | {"pos": last + 2, "event_id": "w9:1", "seq": 2}
    with pytest.raises(Refused, match="event_position"):
        insert(outsider, fresh)
    with pytest.raises(Refused, match="event_position"):
        insert(outsider, {name: value for name, value in fresh.items() if name != "pos"})


def test_a_second_termination_is_refused_by_the_database(outsider):  # E6
    with pytest.raises(Refused, match=r"run_terminated|event_termination"):
        add_event(outsider, "r:run-1", type="run.terminated")


def test_work_after_the_termination_is_refused_by_the_database(outsider):  # E6
    for late in sorted(ACCEPTED_AFTER_TERMINATION):
        add_event(outsider, "r:run-1", type=late)
    for work in sorted(EVENT_TYPES.keys() - ACCEPTED_AFTER_TERMINATION - {"run.terminated"}):
        with pytest.raises(Refused, match="run_terminated"):
            add_event(outsider, "r:run-1", type=work)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_triggers_hold_with_foreign_keys_and_recursive_triggers_in_either_state(outsider):
    for pragma in ("foreign_keys", "recursive_triggers"):
        for state in ("ON", "OFF"):
            outsider.execute(f"PRAGMA {pragma} = {state}")
            with refused(outsider, TABLES):
                insert(outsider, event_at(outsider, 3) | {"body": b"{}"}, "REPLACE")


def event_at(outsider, pos):
    names = ["pos", *COLUMNS]
    row = outsider.execute(f"SELECT {', '.join(names)} FROM event WHERE pos = ?", (pos,)).fetchone()
    return dict(zip(names, row, strict=True))


def insert(outsider, row, verb="INSERT"):
    marks = ", ".join("?" * len(row))
    return outsider.execute(f"{verb} INTO event ({', '.join(row)}) VALUES ({marks})", list(row.values()))
