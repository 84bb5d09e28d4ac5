"""What is not as the events say is found and named, and what is right is not accused."""

from __future__ import annotations

import pytest

from harness import Harness, Limits
from ledger import RunNotFound
from ledger.projections.rows import FOLD_VERSION
from ledger.rebuild import PROJECTIONS
from ledger.verifying import processes, sharing, verify, verify_run
from ledger.verifying.rows import FOLDED_OTHERWISE
from tests.ledger.scripted import ScriptedRun


@pytest.fixture
async def recorded(ledger):
    """Two runs in one session, one with feedback, an erased one, and a decision about the ledger."""
    for run_id in ("run-1", "run-2"):
        for submission in ScriptedRun(run_id).whole():
            ledger.journal.submit(submission).result()
    await ledger.record_feedback("session-1", "run-1", useful=True, comment="it was the disk")
    await ledger.clear_context("session-1")
    return ledger


async def test_an_empty_ledger_is_right(database):
    report = await verify(database.url)
    assert (report.is_right, report.event_count, report.stream_count) == (True, 0, 0)


async def test_what_was_recorded_is_right_and_all_of_it_was_looked_at(recorded, database, plain):  # E9
    report = await verify(database.url)
    assert report.findings == ()
    (counted,) = plain().execute("SELECT (SELECT count(*) FROM event), (SELECT count(*) FROM content)")
    assert (report.event_count, report.content_count, report.stream_count) == (*counted, 3)
    assert report.row_count == 1 + 2 * 3 + 1


async def test_runs_of_the_harness_with_their_failures_are_right(ledger, database):
    async def fail(run, **_):
        raise RuntimeError("no such host")

    harness = Harness(journal=ledger.journal)
    limits = Limits(
        model_calls=5,
        tool_calls=1,
        per_tool_default=1,
        input_tokens=9,
        output_tokens=9,
        total_tokens=9,
        run_bytes=9_999,
    )
    with pytest.raises(RuntimeError):
        async with harness.run(session_id="s-1", query="?", limits=limits, timeout_s=60) as run:
            await harness.tool(run, "look", fail, args={"host": "h" * 200})
    assert (await verify(database.url)).findings == ()


async def test_it_hears_how_many_events_it_has_looked_at(recorded, database):
    heard = []
    report = await verify(database.url, lambda done, of: heard.append((done, of)))
    assert heard == sorted(heard)
    assert heard[-1] == (report.event_count, report.event_count)


LOSE_BYTES = "UPDATE content SET state = 'digest_only', data = NULL WHERE stream_id = 'r:run-1' AND data IS NOT NULL"
ADD_CONTENT = (
    "INSERT INTO content (stream_id, digest, salt, size_bytes, media_type, state)"
    " SELECT stream_id, substr(digest, 2) || 'g', salt, size_bytes, media_type, 'digest_only' FROM content"
    " WHERE stream_id = 'r:run-1' AND digest = (SELECT max(digest) FROM content WHERE stream_id = 'r:run-1')"
)
SPOILED = {
    "a body": ("event", "UPDATE event SET body = ? WHERE stream_id = 'r:run-1' AND seq = 3", "body_changed", 3),
    "a time": ("event", "UPDATE event SET recorded_us = 7 WHERE stream_id = 'r:run-1' AND seq = 4", "link_broken", 4),
    "a column": ("event", "UPDATE event SET type = 'run.paused' WHERE stream_id = 'r:run-1' AND seq = 2",
                 "column_differs", 2),
    "a loss": ("event", "DELETE FROM event WHERE stream_id = 'r:run-1' AND seq = 5", "sequence_gap", 4),
    "a lost end": ("event", "DELETE FROM event WHERE stream_id = 'r:run-1' AND seq > 9", "head_differs", 9),
    "a content": ("content", "UPDATE content SET data = ? WHERE stream_id = 'r:run-1' AND state = 'stored'",
                  "content_damaged", None),
    "a lost content": ("content", "DELETE FROM content WHERE stream_id = 'r:run-1'", "content_missing", 1),
    "a salt": ("content", "UPDATE content SET salt = ? WHERE stream_id = 'r:run-1'", "content_damaged", None),
    "bytes that are gone": ("content", LOSE_BYTES, "content_missing", 1),
    "a session": ("stream", "UPDATE stream SET session_id = 'session-9' WHERE stream_id = 'r:run-1'",
                  "stream_identity", 1),
    "a content that nobody names": ("content", ADD_CONTENT, "content_unnamed", None),
    "a key": ("content", "UPDATE content SET key_id = 'k-1' WHERE stream_id = 'r:run-1'", "content_damaged", None),
    "an owner of what has ended": ("stream", "UPDATE stream SET owner_id = 'w9' WHERE stream_id = 'r:run-1'",
                                   "owner_differs", None),
    "no owner ever": ("stream", "UPDATE stream SET owner_epoch = 0 WHERE stream_id = 'r:run-1'",
                      "owner_differs", None),
    "a row": ("diagnosis_run", "UPDATE diagnosis_run SET status = 'FAILED' WHERE run_id = 'run-1'",
              "row_differs", None),
    "a lost row": ("agent_step", "DELETE FROM agent_step WHERE run_id = 'run-1'", "row_differs", None),
}  # fmt: skip


@pytest.mark.parametrize("how", SPOILED)
async def test_what_somebody_changed_is_found_where_it_is(recorded, database, plain, how):  # E9
    table, spoil, problem, seq = SPOILED[how]
    outsider = plain()
    disarm(outsider, table)
    outsider.execute(spoil, [b"{}" + bytes(30)] if "?" in spoil else [])
    report = await verify(database.url)
    assert not report.is_right
    found = [finding for finding in report.findings if finding.problem == problem]
    assert {finding.stream_id for finding in found} == {"r:run-1"}
    assert found[0].seq == seq


ERASED = "UPDATE content SET state = 'erased', data = NULL, salt = NULL, encoding = NULL, erased_seq = {seq}"


@pytest.mark.parametrize("seq", ["NULL", "3", "99"])
async def test_contents_that_were_erased_without_an_event_are_named_though_no_trigger_minds(
    recorded, database, plain, seq
):  # E9, E10
    plain().execute(f"{ERASED.format(seq=seq)} WHERE stream_id = 'r:run-1'")
    findings = (await verify(database.url)).findings
    assert {(finding.problem, finding.stream_id) for finding in findings} == {("content_damaged", "r:run-1")}
    assert all("no event says so" in finding.detail for finding in findings)


async def test_a_content_that_hides_behind_the_erasure_of_others_is_found(ledger, recorded, database, plain):  # E9, E10
    (digest,) = plain().execute("SELECT max(digest) FROM content WHERE stream_id = 'r:run-1'").fetchone()
    await ledger.erase(run=("session-1", "run-1"), digest=digest)
    assert (await verify(database.url)).findings == ()
    outsider = plain()
    (seq,) = outsider.execute("SELECT erased_seq FROM content WHERE state = 'erased'").fetchone()
    outsider.execute(f"{ERASED.format(seq=seq)} WHERE stream_id = 'r:run-1' AND state = 'stored'")
    (finding,) = (await verify(database.url)).findings
    assert (finding.problem, finding.stream_id, finding.seq) == ("content_damaged", "r:run-1", seq)


async def test_a_comment_of_which_only_the_digest_is_left_is_found(recorded, database, plain):  # E9
    outsider = plain()
    disarm(outsider, "content")
    rows = outsider.execute("SELECT digest, data FROM content WHERE state = 'stored'")
    (digest,) = (digest for digest, data in rows if bytes(data) == b"it was the disk")
    outsider.execute("UPDATE content SET state = 'digest_only', data = NULL WHERE digest = ?", [digest])
    assert "content_missing" in {finding.problem for finding in (await verify(database.url)).findings}


async def test_a_run_that_goes_on_and_that_nobody_owns_is_found(ledger, database, plain):  # E7
    ledger.journal.submit(ScriptedRun("run-1").start()).result()
    assert (await verify(database.url)).findings == ()
    outsider = plain()
    disarm(outsider, "stream")
    outsider.execute("UPDATE stream SET owner_id = NULL WHERE stream_id = 'r:run-1'")
    found = [finding for finding in (await verify(database.url)).findings if finding.problem == "owner_differs"]
    assert [finding.stream_id for finding in found] == ["r:run-1"]


@pytest.mark.parametrize(("key", "value"), [("hash_version", "2"), ("format_version", "0")])
async def test_what_a_ledger_says_of_its_own_form_is_checked(recorded, database, plain, key, value):
    outsider = plain()
    disarm(outsider, "ledger_meta")
    outsider.execute("UPDATE ledger_meta SET value = ? WHERE key = ?", [value, key])
    found = [finding for finding in (await verify(database.url)).findings if finding.problem == "meta_differs"]
    assert [key in finding.detail for finding in found] == [True]


async def test_one_run_alone_is_verified(recorded, database, plain):
    outsider = plain()
    outsider.execute("UPDATE diagnosis_run SET step_count = 9 WHERE run_id = 'run-2'")
    report = await verify_run(database.url, "session-1", "run-1")
    assert (report.findings, report.stream_count, report.row_count) == ((), 1, 4)
    assert report.tail.event_count == report.event_count > 0
    (finding,) = (await verify_run(database.url, "session-1", "run-2")).findings
    assert finding.problem == "row_differs"
    for session_id, run_id in (("session-1", "run-9"), ("session-9", "run-1")):
        with pytest.raises(RunNotFound):
            await verify_run(database.url, session_id, run_id)


async def test_a_field_that_differs_is_named(recorded, database, plain):  # E1
    plain().execute("UPDATE diagnosis_run SET step_count = 9 WHERE run_id = 'run-2'")
    (finding,) = (await verify(database.url)).findings
    assert (finding.stream_id, "diagnosis_run.step_count" in finding.detail) == ("r:run-2", True)


async def test_rows_that_the_log_does_not_know_are_found(recorded, database, plain):
    outsider = plain()
    disarm(outsider, "chat_session")
    outsider.execute(
        "INSERT INTO chat_session (session_id, created_us, last_active_us, message_pair_count) VALUES ('s9', 1, 1, 0)"
    )
    (finding,) = (await verify(database.url)).findings
    assert (finding.problem, "s9" in finding.detail) == ("row_stray", True)


async def test_several_processes_find_what_one_finds(ledger, recorded, database, plain, monkeypatch):
    plain().execute("UPDATE diagnosis_run SET step_count = 9 WHERE run_id = 'run-2'")
    alone = await verify(database.url)
    monkeypatch.setattr(processes, "ALONE_BELOW_EVENTS", 0)
    monkeypatch.setattr(sharing, "SHARE_STREAMS", 1)
    heard = []
    assert await verify(database.url, lambda done, of: heard.append((done, of)), jobs=2) == alone
    assert (len(heard), heard[-1]) == (alone.stream_count + 1, (alone.event_count, alone.event_count))
    assert not alone.is_right


AS_VERSION_1 = (
    "UPDATE diagnosis_run SET fold_version = 1, orchestration_trace = NULL, incidents = NULL",
    "UPDATE agent_step SET timeout_us = NULL",
)
"""What an upgrade leaves of rows that were folded before it."""


async def test_rows_of_an_earlier_version_are_counted_and_are_no_fault(ledger, recorded, database, plain):  # E1
    outsider = plain()
    for statement in AS_VERSION_1:
        outsider.execute(statement)
    report = await verify(database.url)
    assert (report.findings, report.runs_outdated) == ((), 2)
    await ledger.rebuild()
    report = await verify(database.url)
    assert (report.is_right, report.runs_outdated) == (True, 0)


async def test_a_change_cannot_hide_behind_an_earlier_version(recorded, database, plain):  # E1
    outsider = plain()
    for statement in (*AS_VERSION_1, "UPDATE diagnosis_run SET status = 'FAILED' WHERE run_id = 'run-1'"):
        outsider.execute(statement)
    report = await verify(database.url)
    (finding,) = report.findings
    assert (finding.stream_id, "diagnosis_run.status" in finding.detail) == ("r:run-1", True)
    assert report.runs_outdated == 1


async def test_of_what_is_folded_since_an_earlier_version_its_rows_have_nothing_else(recorded, database, plain):  # E1
    outsider = plain()
    for statement in (*AS_VERSION_1, "UPDATE agent_step SET cost_micros = 7 WHERE run_id = 'run-1'"):
        outsider.execute(statement)
    (finding,) = (await verify(database.url)).findings
    assert (finding.stream_id, "agent_step.cost_micros" in finding.detail) == ("r:run-1", True)


@pytest.mark.parametrize("version", [0, FOLD_VERSION + 1, 2**40])
async def test_a_version_that_never_was_excuses_nothing(recorded, database, plain, version):
    plain().execute("UPDATE diagnosis_run SET fold_version = ? WHERE run_id = 'run-2'", [version])
    (finding,) = (await verify(database.url)).findings
    assert (finding.stream_id, finding.problem) == ("r:run-2", "row_differs")


def test_of_each_version_it_is_known_in_what_its_rows_differ():
    assert set(FOLDED_OTHERWISE) == set(range(1, FOLD_VERSION))
    columns = {f"{table.name}.{column.name}" for table in PROJECTIONS for column in table.columns}
    assert set().union(*FOLDED_OTHERWISE.values()) <= columns


def disarm(outsider, table):
    """Take the table's triggers away, as somebody would who owns the database."""
    if outsider.dialect == "postgresql":
        outsider.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
        return
    for (name,) in outsider.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ?", [table]):
        outsider.execute(f"DROP TRIGGER {name}")
