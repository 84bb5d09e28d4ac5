"""What the owner of a database can do to a ledger.

Each way takes what it changes from a seed, so that a test can try many, and says what must be found for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256

from ledger.audit.notes.notes import VerifierKey
from ledger.bytes import body_hash
from tests.contract.forging import KEYS, OF_EVENT, Expected, Forger, found_at
from tests.contract.test_verifying_rules import forge

NOT_VOUCHED_FOR = {"fold_version"}
"""A row may say that it waits for a rebuild."""
COLUMNS = {
    "event_id": "'x' || event_id",
    "type": "'run.paused'",
    "version": "version + 1",
    "session_id": "'session-9'",
    "run_id": "'run-9'",
    "occurred_us": "occurred_us + 1",
    "recorded_us": "recorded_us + 1",
    "seq": "seq + 1000",
}

Way = Callable[[Forger], Expected]


def change_a_body(forger: Forger) -> Expected:
    stream_id, seq = forger.an_event()
    body = bytearray(forger.execute(f"SELECT body FROM event {OF_EVENT}", stream_id, seq)[0][0])
    body[forger.random.randrange(len(body))] ^= 1 << forger.random.randrange(7)
    forger.execute(f"UPDATE event SET body = ? {OF_EVENT}", bytes(body), stream_id, seq)
    return found_at(stream_id, seq, "body_changed")


def change_a_body_with_its_hash(forger: Forger) -> Expected:
    stream_id, seq = forger.an_event()
    body = json.dumps({"type": "x", "version": 1}, separators=(",", ":")).encode()
    forger.execute(f"UPDATE event SET body = ?, body_hash = ? {OF_EVENT}", body, body_hash(body), stream_id, seq)
    return found_at(stream_id, seq, "link_broken")


def change_a_link(forger: Forger) -> Expected:
    stream_id, seq = forger.an_event()
    forger.execute(f"UPDATE event SET link = ? {OF_EVENT}", forger.random.randbytes(32), stream_id, seq)
    return found_at(stream_id, seq, "link_broken")


def change_a_column(forger: Forger) -> Expected:
    stream_id, seq = forger.an_event()
    column = forger.random.choice(sorted(COLUMNS))
    forger.execute(f"UPDATE event SET {column} = {COLUMNS[column]} {OF_EVENT}", stream_id, seq)
    problems = ("column_differs", "stream_identity", "link_broken", "sequence_gap")
    return found_at(stream_id, seq, *problems, before=1)


def move_an_event_to_another_stream(forger: Forger) -> Expected:
    # Not its end, of which a run has but one.
    stream_id, seq = "r:run-1", forger.random.randint(1, 9)
    forger.execute(f"UPDATE event SET stream_id = 'r:run-2', seq = 1000 + seq {OF_EVENT}", stream_id, seq)
    return found_at(stream_id, seq, "sequence_gap", "head_differs", before=1)


def remove_an_event(forger: Forger) -> Expected:
    stream_id, seq = forger.an_event()
    forger.remove(stream_id, seq)
    return found_at(stream_id, seq, "sequence_gap", "head_differs", before=1)


def remove_an_event_and_number_the_others_anew(forger: Forger) -> Expected:
    stream_id, seq = forger.an_event()
    forger.remove(stream_id, seq)
    forger.shift(stream_id, seq, -1)
    return found_at(stream_id, seq, "link_broken", "head_differs", before=1)


def insert_an_event(forger: Forger) -> Expected:
    stream_id, seq = forger.an_event()
    forger.shift(stream_id, seq - 1, 1)
    columns = "version, session_id, run_id, occurred_us, recorded_us, body, body_hash, link"
    given = "OVERRIDING SYSTEM VALUE" if forger.outsider.dialect == "postgresql" else ""
    forger.execute(
        f"INSERT INTO event (pos, stream_id, seq, event_id, type, {columns}) {given}"
        " SELECT (SELECT max(pos) + 1 FROM event), stream_id, ?, event_id || 'x', 'x',"
        f" {columns} FROM event {OF_EVENT}",
        seq, stream_id, seq + 1,
    )  # fmt: skip
    return found_at(stream_id, seq, "link_broken", "column_differs", after=1)


def swap_two_events(forger: Forger) -> Expected:
    stream_id, seq = forger.an_event(forger.random.choice(["r:run-1", "r:run-2"]))
    seq = min(seq, forger.head_of(stream_id) - 1)
    for new, old in ((-1, seq), (seq, seq + 1), (seq + 1, -1)):
        forger.execute(f"UPDATE event SET seq = ? {OF_EVENT}", new, stream_id, old)
    return found_at(stream_id, seq, "link_broken")


def swap_two_places(forger: Forger) -> Expected:
    table, column = ("leaf", "leaf_index") if forger.outsider.dialect == "postgresql" else ("event", "pos")
    first, second = forger.random.sample([row[0] for row in forger.execute(f"SELECT {column} FROM {table}")], 2)
    for new, old in ((-1, first), (first, second), (second, -1)):
        forger.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", new, old)
    return Expected(frozenset({"checkpoint_differs"}))


def link_a_stream_anew(forger: Forger) -> Expected:
    stream_id, seq = forger.an_event()
    bodies = forger.bodies_of(stream_id)
    bodies[seq - 1]["event_id"] += "x"
    forge(forger.outsider, stream_id, bodies)
    return Expected(frozenset({"checkpoint_differs"}))


def say_another_agent_everywhere(forger: Forger) -> Expected:
    bodies = forger.bodies_of("r:run-1")
    bodies[0]["agent"] = "somebody"
    forge(forger.outsider, "r:run-1", bodies)
    forger.execute("UPDATE diagnosis_run SET agent = 'somebody' WHERE run_id = 'run-1'")
    return Expected(frozenset({"checkpoint_differs"}))


def cut_a_stream(forger: Forger) -> Expected:
    stream_id, seq = forger.an_event("r:run-1")
    seq = max(2, seq)
    forger.execute("DELETE FROM event WHERE stream_id = ? AND seq >= ?", stream_id, seq)
    return found_at(stream_id, seq - 1, "head_differs")


def cut_the_log(forger: Forger) -> Expected:
    forger.delete_streams("r:run-3", "s:session-3")
    forger.close_places()
    return Expected(frozenset({"checkpoint_differs"}))


def delete_a_run(forger: Forger) -> Expected:
    forger.delete_streams("r:run-2", "s:session-2")
    forger.close_places()
    return Expected(frozenset({"checkpoint_differs"}))


def delete_a_run_and_leave_its_places(forger: Forger) -> Expected:
    forger.delete_streams("r:run-2", "s:session-2")
    return Expected(frozenset({"position_gap", "order_differs"}))


def _a_row(forger: Forger) -> tuple[str, str, str]:
    """A projection, whose a row of it is, and which stream that is."""
    table = forger.random.choice(sorted(KEYS))
    (key,) = forger.random.choice(forger.execute(f"SELECT {KEYS[table]} FROM {table} ORDER BY 1"))
    return table, key, f"{'s' if table == 'chat_session' else 'r'}:{key}"


def edit_a_row(forger: Forger) -> Expected:
    table, key, stream_id = _a_row(forger)
    column = forger.random.choice([one for one in forger.outsider.columns(table) if one not in NOT_VOUCHED_FOR])
    ((old,),) = forger.execute(f"SELECT {column} FROM {table} WHERE {KEYS[table]} = ? LIMIT 1", key)
    is_number = isinstance(old, int) or column.endswith(("_us", "_micros", "_tokens", "_count", "_chunks"))
    new: object = (old or 0) + 1_000 if is_number else '{"x":1}'
    if column == KEYS[table]:
        new = "nobody"
    forger.execute(f"UPDATE {table} SET {column} = ? WHERE {KEYS[table]} = ?", new, key)
    return Expected(frozenset({"row_differs"}), frozenset({stream_id}))


def remove_a_row(forger: Forger) -> Expected:
    table, key, stream_id = _a_row(forger)
    forger.execute(f"DELETE FROM {table} WHERE {KEYS[table]} = ?", key)
    return Expected(frozenset({"row_differs"}), frozenset({stream_id}))


def add_a_row(forger: Forger) -> Expected:
    columns = ", ".join(one for one in forger.outsider.columns("agent_step") if one != "step_no")
    forger.execute(
        f"INSERT INTO agent_step (step_no, {columns}) SELECT step_no + 9, {columns} FROM agent_step"
        " WHERE run_id = 'run-1'"
    )
    return Expected(frozenset({"row_differs"}), frozenset({"r:run-1"}))


def add_a_row_of_nobody(forger: Forger) -> Expected:
    columns = ", ".join(one for one in forger.outsider.columns("diagnosis_run") if one != "run_id")
    forger.execute(
        f"INSERT INTO diagnosis_run (run_id, {columns}) SELECT 'run-9', {columns} FROM diagnosis_run"
        " WHERE run_id = 'run-1'"
    )
    return Expected(frozenset({"row_stray"}))


CONTENT = {
    "data": "data = ?, state = 'stored'",
    "salt": "salt = ?",
    "size": "size_bytes = size_bytes + 1",
    "kind": "media_type = 'text/html'",
    "loss": "data = NULL, state = 'digest_only', encoding = NULL",
    "erasure": "data = NULL, salt = NULL, encoding = NULL, state = 'erased', erased_seq = 3",
    "name": "digest = 'x' || digest",
}


def change_a_content(forger: Forger) -> Expected:
    stored = forger.execute("SELECT stream_id, digest FROM content WHERE state = 'stored' ORDER BY 1, 2")
    stream_id, digest = forger.random.choice(stored)
    how = forger.random.choice(sorted(CONTENT))
    values = [forger.random.randbytes(32)] if "?" in CONTENT[how] else []
    forger.execute(f"UPDATE content SET {CONTENT[how]} WHERE stream_id = ? AND digest = ?", *values, stream_id, digest)
    return Expected(frozenset({"content_damaged", "content_missing", "content_unnamed"}), frozenset({stream_id}))


def change_the_size_of_what_is_gone(forger: Forger) -> Expected:
    forger.execute("UPDATE content SET size_bytes = size_bytes + 1 WHERE state IN ('digest_only', 'erased')")
    return Expected(frozenset({"content_damaged"}), frozenset({"r:run-1", "r:run-3"}))


def remove_a_content(forger: Forger) -> Expected:
    stream_id, digest = forger.random.choice(forger.execute("SELECT stream_id, digest FROM content ORDER BY 1, 2"))
    forger.execute("DELETE FROM content WHERE stream_id = ? AND digest = ?", stream_id, digest)
    return Expected(frozenset({"content_missing", "content_damaged"}), frozenset({stream_id}))


STREAM = {
    "kind": "kind = 'sys'",
    "head": "head_seq = head_seq + 1",
    "link": "head_link = ?",
    "owner": "owner_id = 'w9'",
    "session": "session_id = 'session-9'",
}


def change_a_stream(forger: Forger) -> Expected:
    how = forger.random.choice(sorted(STREAM))
    values = [forger.random.randbytes(32)] if "?" in STREAM[how] else []
    if forger.outsider.dialect == "postgresql":
        forger.execute("ALTER TABLE stream DROP CONSTRAINT IF EXISTS stream_identity")
    forger.execute(f"UPDATE stream SET {STREAM[how]} WHERE stream_id = 'r:run-1'", *values)
    problems = ("stream_identity", "head_differs", "owner_differs")
    return Expected(frozenset(problems), frozenset({"r:run-1"}))


def call_it_another_ledger(forger: Forger) -> Expected:
    forger.execute("UPDATE ledger_meta SET value = 'another' WHERE key = 'ledger_id'")
    return found_at("r:run-1", 1, "link_broken")


def change_what_was_signed(forger: Forger) -> Expected:
    change = forger.random.choice(["root = zeroblob(32)", "size = size + 1000", "key_id = 'x'", "note = 'x' || note"])
    if forger.outsider.dialect == "postgresql":
        change = change.replace("zeroblob(32)", "sha256('')")
    forger.execute(f"UPDATE checkpoint SET {change} WHERE size = (SELECT max(size) FROM checkpoint)")
    return Expected(frozenset({"checkpoint_differs"}))


def write_all_anew(forger: Forger, public_key: VerifierKey) -> None:
    """Let the log say something else, and always have been signed by another key; the tree is made when it signs."""
    say_another_agent_everywhere(forger)
    for table in ("tile", "checkpoint"):
        forger.execute(f"DELETE FROM {table}")
    bodies = forger.bodies_of("sys")
    created = next(body for body in bodies if body["type"] == "key.created")
    created |= {"key_id": public_key.key_id, "fingerprint": sha256(public_key.public).hexdigest()}
    forge(forger.outsider, "sys", bodies)


WAYS: dict[str, Way] = {
    way.__name__: way
    for way in (
        change_a_body,
        change_a_body_with_its_hash,
        change_a_link,
        change_a_column,
        move_an_event_to_another_stream,
        remove_an_event,
        remove_an_event_and_number_the_others_anew,
        insert_an_event,
        swap_two_events,
        swap_two_places,
        link_a_stream_anew,
        say_another_agent_everywhere,
        cut_a_stream,
        cut_the_log,
        delete_a_run,
        delete_a_run_and_leave_its_places,
        edit_a_row,
        remove_a_row,
        add_a_row,
        add_a_row_of_nobody,
        change_a_content,
        change_the_size_of_what_is_gone,
        remove_a_content,
        change_a_stream,
        call_it_another_ledger,
        change_what_was_signed,
    )
}
