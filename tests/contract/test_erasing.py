"""Erased content is gone, what is not erased stays, and every proof goes on holding (SPEC E10, D19)."""

import asyncio
import contextlib
from hashlib import sha256

import pytest
from click.testing import CliRunner

from harness import Harness, InvalidInput, Limits
from ledger import ContentNotFound, ErasureLimits, RunNotFound, SessionNotFound
from ledger.erasing.erasing import CONTENTS_AT_ONCE
from tests.contract.bytes_on_disk import found_in
from tests.contract.databases import Refused
from tests.contract.test_system_stream import recomputed
from tests.ledger import commands as cli
from tests.ledger.scripted import ScriptedRun
from tests.ledger.tables import dump

LIMITS = Limits(
    model_calls=100,
    tool_calls=2_000,
    per_tool_default=2_000,
    input_tokens=10_000,
    output_tokens=1_000,
    total_tokens=11_000,
    run_bytes=100_000_000,
)


def secret(run_id, what):
    return f"<<{run_id} {what} in clear words, {word_of(run_id, what)}>>"


def word_of(run_id, what):
    """A word of its own, so that no index has it as the end of another one."""
    return f"w{sha256(f'{run_id} {what}'.encode()).hexdigest()[:24]}"


def secrets_of(run_id):
    told = ("query", "input", "output", "answer", "error", "comment", "rationale")
    # What is searched has its words in an index, which may leave out a beginning that the one before has, too.
    words = [word_of(run_id, what)[3:].encode() for what in ("query", "answer")]
    return [*(secret(run_id, what).encode() for what in told), *words]


async def talk(ledger, run_id="run-1", session_id="session-1"):
    """A run that has said something in clear words in every place there is."""
    harness = Harness(ledger.journal)

    def work(run, pattern):
        if pattern == "fail":
            raise RuntimeError(secret(run_id, "error"))
        return secret(run_id, "output")

    query = secret(run_id, "query")
    async with harness.run(session_id=session_id, run_id=run_id, query=query, limits=LIMITS, timeout_s=30) as run:
        await harness.tool(run, "work", work, args={"pattern": secret(run_id, "input")})
        with pytest.raises(RuntimeError):
            await harness.tool(run, "work", work, args={"pattern": "fail"})
        harness.answer(run, secret(run_id, "answer"))
    await ledger.record_feedback(session_id, run_id, useful=True, comment=secret(run_id, "comment"))
    said = {"evaluator": "rules", "verdict": "PASS", "rationale": secret(run_id, "rationale")}
    await ledger.record_evaluation(session_id, run_id, **said)


def hold_a_snapshot(outsider):
    """See the ledger from now on as it is now."""
    if outsider.dialect == "sqlite":
        outsider.execute("BEGIN")
        outsider.execute("SELECT count(*) FROM content").fetchone()
    else:
        outsider.script("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM ledger_meta")


def let_go(outsider):
    outsider.execute("ROLLBACK") if outsider.dialect == "sqlite" else outsider.script("ROLLBACK")


def views_of(trace):
    """Every content that a trace shows."""
    rows = (*trace.agent_steps, *trace.tool_invocations)
    views = [trace.answer, trace.run.error, *(view for row in rows for view in (row.input, row.output, row.error))]
    return [view for view in views if view is not None]


async def test_what_was_erased_is_in_no_file_any_more_and_everything_else_is(ledger, database):  # CASES 45, D19
    await talk(ledger, "run-1")
    await talk(ledger, "run-2")
    assert found_in(database, *secrets_of("run-1")) == set(secrets_of("run-1"))
    report = await ledger.erase(run=("session-1", "run-1"), actor="dpo-1", reason="USER_REQUEST")
    assert (report.stage, report.problem, report.run_count) == ("FILE", None, 1)
    assert report.content_count == 8
    assert found_in(database, *secrets_of("run-1")) == set()
    await ledger.close()
    assert found_in(database, *secrets_of("run-1")) == set()
    assert found_in(database, *secrets_of("run-2")) == set(secrets_of("run-2"))


async def test_what_was_erased_is_shown_as_erased_with_by_whom_and_when(ledger, clock):  # E10
    await talk(ledger)
    clock.advance(5)
    await ledger.erase(run=("session-1", "run-1"), actor="dpo-1", reason="USER_REQUEST")
    trace = await ledger.reader.trace("session-1", "run-1")
    views = views_of(trace)
    assert len(views) == 5
    for view in views:
        assert (view.state, view.data, view.text) == ("erased", None, None)
        assert (view.erasure.actor, view.erasure.reason) == ("dpo-1", "USER_REQUEST")
        assert view.erasure.erased_us == clock.now_us()
        assert view.size_bytes > 0
    assert trace.run.summary.query is None
    assert trace.run.summary.answer_preview is None
    assert "comment" not in trace.feedback
    assert "rationale" not in trace.self_evaluation["rules"]


async def test_an_erasure_is_decided_in_the_ledgers_stream_and_told_in_the_runs(ledger, plain):  # D2, D19
    await talk(ledger)
    before = await ledger.reader.trace("session-1", "run-1")
    report = await ledger.erase(run=("session-1", "run-1"), actor="dpo-1")
    decided, finished = await ledger.reader.system_events()
    assert (decided.type, decided.fields["scope"], decided.fields["of_run_id"]) == ("erasure.decided", "RUN", "run-1")
    assert (finished.type, finished.fields["stage"], finished.fields["content_count"]) == (
        "erasure.finished",
        "FILE",
        8,
    )
    told = [event for event in await ledger.reader.events("session-1", "run-1") if event.type == "content.erased"]
    assert [event.fields["stage"] for event in told] == ["ROWS", "FILE"]
    for event in (decided, finished, *told):
        assert event.fields["erasure_id"] == report.erasure_id
    assert {event.fields["size_bytes"] for event in (finished, *told)} == {report.size_bytes}
    after = await ledger.reader.trace("session-1", "run-1")
    assert after.run.summary.status == before.run.summary.status == "SUCCESS"
    assert recomputed(plain(), "r:run-1")[-1].hex() == after.run.head_link
    assert len(recomputed(plain(), "sys")) == 2


async def test_a_rebuild_brings_nothing_back(ledger, database, plain):  # E1, E10
    await talk(ledger)
    await ledger.erase(session="session-1")
    connection = plain()
    live = dump(connection)
    for table in live:
        connection.execute(f"DELETE FROM {table}")
    await ledger.rebuild()
    assert dump(connection) == live
    assert (await ledger.rebuild()).is_clean
    assert found_in(database, *secrets_of("run-1")) == set()
    assert {view.state for view in views_of(await ledger.reader.trace("session-1", "run-1"))} == {"erased"}


async def test_of_a_session_every_run_is_erased_and_of_others_none(ledger, database):
    for run_id, session_id in (("run-1", "session-1"), ("run-2", "session-1"), ("run-3", "session-2")):
        await talk(ledger, run_id, session_id)
    report = await ledger.erase(session="session-1")
    assert (report.run_count, report.content_count) == (2, 16)
    assert found_in(database, *secrets_of("run-1"), *secrets_of("run-2")) == set()
    trace = await ledger.reader.trace("session-2", "run-3")
    assert trace.answer.text == secret("run-3", "answer")


@pytest.mark.parametrize("in_its_run", [True, False])
async def test_one_content_is_erased_by_its_digest(ledger, database, in_its_run):
    await talk(ledger)
    digest = (await ledger.reader.trace("session-1", "run-1")).answer.digest
    run = ("session-1", "run-1") if in_its_run else None
    report = await ledger.erase(run=run, digest=digest)
    assert (report.run_count, report.content_count) == (1, 1)
    trace = await ledger.reader.trace("session-1", "run-1")
    assert trace.answer.state == "erased"
    assert trace.run.summary.query == secret("run-1", "query")
    assert found_in(database, secret("run-1", "answer").encode()) == set()
    told = [event for event in await ledger.reader.events("session-1", "run-1") if event.type == "content.erased"]
    assert {event.fields["digest"] for event in told} == {digest}
    assert (await ledger.erase(run=run, digest=digest)).erasure_id is None


async def test_erasing_what_does_not_exist_says_so_and_decides_nothing(ledger):  # CASES 45
    await talk(ledger)
    await ledger.open_session("session-2")
    digest = (await ledger.reader.trace("session-1", "run-1")).answer.digest
    with pytest.raises(RunNotFound):
        await ledger.erase(run=("session-1", "run-9"))
    with pytest.raises(RunNotFound):
        await ledger.erase(run=("session-2", "run-1"))
    with pytest.raises(SessionNotFound):
        await ledger.erase(session="session-9")
    with pytest.raises(ContentNotFound):
        await ledger.erase(digest="0" * 64)
    with pytest.raises(ContentNotFound):
        await ledger.erase(run=("session-1", "run-1"), digest="0" * 64)
    with pytest.raises(RunNotFound):
        await ledger.erase(run=("session-2", "run-1"), digest=digest)
    assert await ledger.reader.system_events() == []
    assert (await ledger.reader.trace("session-1", "run-1")).answer.text == secret("run-1", "answer")


@pytest.mark.parametrize(
    "about",
    [
        {},
        {"session": "session-1", "run": ("session-1", "run-1")},
        {"session": "session-1", "digest": "0" * 64},
        {"digest": "X" * 64},
        {"session": " "},
        {"run": ("session-1", "r/1")},
        {"session": "session-1", "reason": "because he asked"},
        {"session": "session-1", "actor": "Jürgen"},
    ],
)
async def test_an_order_that_makes_no_sense_is_refused(ledger, about):
    with pytest.raises(InvalidInput):
        await ledger.erase(**about)


async def test_erasing_twice_is_erasing_once(ledger, plain):
    await talk(ledger)
    await ledger.erase(session="session-1")
    before = dump(plain(), "event", "content", "stream")
    again = await ledger.erase(session="session-1")
    assert (again.erasure_id, again.content_count, again.stage) == (None, 0, None)
    assert dump(plain(), "event", "content", "stream") == before


async def test_a_dry_run_says_how_much_there_is_and_changes_nothing(ledger, plain):
    await talk(ledger)
    before = dump(plain(), "event", "content", "stream")
    planned = await ledger.erase(run=("session-1", "run-1"), dry_run=True)
    assert dump(plain(), "event", "content", "stream") == before
    report = await ledger.erase(run=("session-1", "run-1"))
    assert (planned.run_count, planned.content_count, planned.size_bytes) == (1, 8, report.size_bytes)


async def test_a_digest_that_was_kept_alone_loses_its_salt_so_that_nobody_can_try_what_it_was_of(ledger, plain):  # D10
    run = ScriptedRun()
    for submission in (run.start(), run.attempt().start("a guess", keep=False)):
        ledger.journal.submit(submission).result()
    await ledger.erase(run=("session-1", "run-1"))
    assert plain().execute("SELECT DISTINCT salt, data, state FROM content").fetchall() == [(None, None, "erased")]


async def test_what_recurs_in_a_running_run_gets_a_new_salt_and_row(ledger, database):  # D10, D19
    harness = Harness(ledger.journal)
    async with harness.run(session_id="session-1", run_id="run-1", limits=LIMITS, timeout_s=30) as run:

        async def say(words):
            await harness.tool(run, "echo", lambda run, words: words, args={"words": words})
            rows = (await ledger.reader.trace("session-1", "run-1")).tool_invocations
            return rows[-1].input

        first = await say("the same words")
        assert (await say("the same words")).digest == first.digest
        await ledger.erase(run=("session-1", "run-1"))
        assert found_in(database, b"the same words") == set()
        await say("other words")
        recurred = await say("the same words")
        assert (recurred.text, recurred.state) == (first.text, "stored")
        assert recurred.digest != first.digest
        assert (await say("the same words")).digest == recurred.digest
    rows = (await ledger.reader.trace("session-1", "run-1")).tool_invocations
    assert [row.input.state for row in rows] == ["erased", "erased", "stored", "stored", "stored"]


async def test_what_was_under_way_when_its_content_was_erased_does_not_bring_it_back(ledger, database):  # D19
    run = ScriptedRun()
    ledger.journal.submit(run.start()).result()
    ledger.journal.submit(run.attempt().start("spoken", keep=True)).result()
    ledger.journal.submit(run.attempt().start("noted", keep=False)).result()
    await ledger.erase(run=("session-1", "run-1"))
    # Sealed before the erasure, with the same salts, and submitted after it.
    late = run.attempt()
    for submission in (run.attempt().start("spoken"), late.start("noted"), late.succeed("not erased")):
        ledger.journal.submit(submission).result()
    tools = (await ledger.reader.trace("session-1", "run-1")).tool_invocations
    assert {tool.input.state for tool in tools} == {"erased"}
    assert tools[-1].output.text == "not erased"
    assert found_in(database, b"spoken", b"noted") == set()


async def test_a_run_of_another_process_can_be_erased_while_it_goes_on(ledger, database):
    harness = Harness(ledger.journal)
    async with (
        await database.open() as other,
        harness.run(session_id="session-1", run_id="run-1", limits=LIMITS, timeout_s=30) as run,
    ):
        for round_no in range(5):
            said = asyncio.gather(
                *(
                    harness.tool(run.branch(f"b.{round_no}.{number}"), "echo", lambda run, words: words, args=words)
                    for number in range(20)
                    for words in [{"words": f"{round_no} {number}"}]
                )
            )
            await other.erase(run=("session-1", "run-1"))
            await said
        # The ends before it are durable once the next boundary is crossed (D12).
        await harness.tool(run, "settle", lambda run: None)
        await other.erase(run=("session-1", "run-1"))
        harness.answer(run, "the end")
    trace = await ledger.reader.trace("session-1", "run-1")
    assert trace.run.summary.tool_call_count == 101
    assert {tool.output.state for tool in trace.tool_invocations[:100]} == {"erased"}
    assert trace.answer.text == "the end"
    assert (await ledger.rebuild()).is_clean


async def test_a_long_run_is_erased_in_many_small_transactions(ledger, plain):
    run = ScriptedRun()
    futures = [ledger.journal.submit(run.start())]
    for number in range(CONTENTS_AT_ONCE):
        attempt = run.attempt()
        futures += [
            ledger.journal.submit(one) for one in (attempt.start(f"in {number}"), attempt.succeed(f"out {number}"))
        ]
    for future in futures:
        future.result()
    heard = []
    report = await ledger.erase(run=("session-1", "run-1"), on_progress=heard.append)
    assert report.content_count == 2 * CONTENTS_AT_ONCE + 1
    assert (report.run_count, heard[-1]) == (1, 1)
    rows = plain().execute("SELECT state, count(*) FROM content GROUP BY state").fetchall()
    assert rows == [("erased", 2 * CONTENTS_AT_ONCE + 1)]
    told = [event.fields for event in await ledger.reader.events("session-1", "run-1", limit=5_000)]
    told = [fields for fields in told if fields["type"] == "content.erased"]
    assert [fields["stage"] for fields in told] == ["ROWS"] * 3 + ["FILE"]
    assert max(fields["content_count"] for fields in told[:3]) == CONTENTS_AT_ONCE
    assert sum(fields["content_count"] for fields in told[:3]) == told[3]["content_count"] == report.content_count


async def test_a_run_that_nobody_can_read_is_erased_all_the_same(ledger, plain, database):
    await talk(ledger)
    connection = plain()
    connection.execute(
        "DROP TRIGGER event_update" if connection.dialect == "sqlite" else "DROP TRIGGER event_immutable ON event"
    )
    connection.execute("UPDATE event SET body = link WHERE stream_id = 'r:run-1' AND seq = 1")
    await ledger.close()
    async with await database.open() as again:
        report = await again.erase(run=("session-1", "run-1"))
        assert (report.runs_unreadable, report.content_count, report.stage) == (("run-1",), 8, "FILE")
    assert found_in(database, *secrets_of("run-1")) == set()


ATTACKS = {
    "a row is put in its place": "INSERT INTO content (stream_id, digest, salt, size_bytes, media_type, data, state)"
    " SELECT stream_id, digest, body_hash, 1, 'text/plain', body_hash, 'stored'"
    " FROM content JOIN event USING (stream_id)"
    " ON CONFLICT (stream_id, digest) DO UPDATE SET data = excluded.data, salt = excluded.salt, state = 'stored'",
    "data is taken from another": "UPDATE content SET state = 'stored', data = event.body, salt = event.link FROM event"
    " WHERE event.stream_id = content.stream_id",
    "a row is deleted": "DELETE FROM content",
    "data is changed": "UPDATE content SET data = salt WHERE state = 'stored'",
    "a salt is changed": "UPDATE content SET salt = data WHERE state = 'stored'",
    "a size is changed": "UPDATE content SET size_bytes = 0",
    "a content is moved": "UPDATE content SET stream_id = 'r:run-2' WHERE stream_id = 'r:run-1'",
    "data is dropped": "UPDATE content SET data = NULL, state = 'digest_only' WHERE state = 'stored'",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
async def test_a_plain_connection_can_change_no_content_but_by_erasing_it(ledger, plain, attack):
    await talk(ledger, "run-1")
    await talk(ledger, "run-2")
    await ledger.erase(run=("session-1", "run-1"))
    before = dump(plain(), "content")
    with contextlib.suppress(Refused):
        plain().execute(attack)
    assert dump(plain(), "content") == before


async def test_while_a_reader_is_in_the_way_an_erasure_says_how_far_it_came_and_is_finished_later(
    database, plain
):  # D19
    async with await database.open(erasure_limits=ErasureLimits(clean_timeout_s=0.2)) as ledger:
        await talk(ledger)
        reader = plain()
        hold_a_snapshot(reader)
        report = await ledger.erase(run=("session-1", "run-1"))
        assert (report.stage, report.problem) == ("ROWS", "a reader keeps the log")
        assert views_of(await ledger.reader.trace("session-1", "run-1"))[0].state == "erased"
        assert await ledger.finish_erasures() == (1, "ROWS", "a reader keeps the log")
        let_go(reader)
        assert await ledger.finish_erasures() == (1, "FILE", None)
        assert await ledger.finish_erasures() == (0, None, None)
        assert found_in(database, *secrets_of("run-1")) == set()
        assert [event.type for event in await ledger.reader.system_events()] == ["erasure.decided", "erasure.finished"]


WRITING = "BEGIN; SELECT pg_current_xact_id()"
IN_THE_WAY = {
    "has written and sits idle": (WRITING, "ROLLBACK", None),
    "has written in another database": (WRITING, "ROLLBACK", "postgres"),
    "is prepared": (f"{WRITING}; PREPARE TRANSACTION 'later'", "ROLLBACK PREPARED 'later'", None),
}


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
@pytest.mark.parametrize(("begin", "end", "where"), IN_THE_WAY.values(), ids=IN_THE_WAY)
async def test_a_transaction_that_holds_on_to_old_rows_without_reading_is_in_the_way_too(
    database, begin, end, where
):  # D19
    async with await database.open(erasure_limits=ErasureLimits(clean_timeout_s=0.2)) as ledger:
        await talk(ledger)
        other = database.outsider(where)
        other.script(begin)
        try:
            assert (await ledger.erase(run=("session-1", "run-1"))).stage == "ROWS"
        finally:
            other.script(end)
        assert await ledger.finish_erasures() == (1, "FILE", None)
    assert found_in(database, *secrets_of("run-1")) == set()


async def test_what_a_reader_was_in_the_way_of_is_finished_when_the_ledger_is_closed(database, plain):  # D19
    async with await database.open(erasure_limits=ErasureLimits(clean_timeout_s=0.1)) as ledger:
        await talk(ledger)
        reader = plain()
        hold_a_snapshot(reader)
        assert (await ledger.erase(run=("session-1", "run-1"))).stage == "ROWS"
        let_go(reader)
    assert found_in(database, *secrets_of("run-1")) == set()
    async with await database.open() as ledger:
        assert await ledger.finish_erasures() == (0, None, None)


async def test_a_file_too_large_to_keep_others_waiting_is_written_anew_only_when_asked_for(database):  # D19
    async with await database.open(erasure_limits=ErasureLimits(rewrite_bytes_max=1_000)) as ledger:
        await talk(ledger)
        report = await ledger.erase(run=("session-1", "run-1"))
        assert report.stage == "LOG"
        assert "written anew only when asked for" in report.problem
        assert await ledger.finish_erasures() == (1, "FILE", None)
    assert found_in(database, *secrets_of("run-1")) == set()


async def test_an_erasure_that_was_cancelled_half_way_can_be_finished(ledger, database):  # CASES 37
    for number in range(8):
        await talk(ledger, f"run-{number}")

    def stop(_):
        raise KeyError("on purpose")

    with pytest.raises(KeyError):
        await ledger.erase(session="session-1", on_progress=stop)
    assert await ledger.finish_erasures() == (1, "FILE", None)
    assert found_in(database, *(needle for number in range(8) for needle in secrets_of(f"run-{number}"))) == set()


async def test_runs_that_ended_long_ago_are_erased_and_no_others(database, clock):  # item 7: retention
    async with await database.open(wall_clock=clock) as ledger:
        open_run = ScriptedRun("run-open", epoch_us=0)
        ledger.journal.submit(open_run.start()).result()
        for number, age_days in enumerate((100, 91, 89, 1)):
            run = ScriptedRun(f"run-{number}", epoch_us=clock.now_us() - age_days * 86_400_000_000)
            for submission in run.whole():
                ledger.journal.submit(submission).result()
        planned = await ledger.erase_older_than(90 * 86_400, dry_run=True)
        assert await ledger.reader.system_events() == []
        report = await ledger.erase_older_than(90 * 86_400, actor="ops-1")
        assert (report.run_count, report.stage) == (2, "FILE")
        assert (planned.run_count, planned.content_count) == (report.run_count, report.content_count)
        states = {}
        for row in (await ledger.reader.recent_runs()).rows:
            states[row.run_id] = row.query is None
            assert len(await ledger.reader.events("session-1", row.run_id)) > 0
        assert states == {"run-0": True, "run-1": True, "run-2": False, "run-3": False, "run-open": False}
        decided, _ = await ledger.reader.system_events()
        assert (decided.type, decided.fields["before_us"]) == (
            "retention.decided",
            clock.now_us() - 90 * 86_400 * 1_000_000,
        )
        assert (await ledger.erase_older_than(90 * 86_400)).erasure_id is None


@pytest.mark.parametrize("age_s", [-1, True, 1e12, float("nan")])
async def test_an_age_that_is_none_is_refused(ledger, age_s):
    with pytest.raises(InvalidInput):
        await ledger.erase_older_than(age_s)


def test_the_commands_erase_and_rebuild_on_every_engine(database):
    async def record():
        async with await database.open() as ledger:
            for submission in ScriptedRun(epoch_us=0).whole():
                ledger.journal.submit(submission).result()

    def call(command, *args):
        result = CliRunner().invoke(command, [*args, "--db", database.url])
        assert result.exit_code == 0, result.stderr
        return result.stdout

    asyncio.run(record())
    assert call(cli.retention, "--older-than", "90d", "--dry-run") == "would erase 6 contents (94 bytes) of 1 run\n"
    done = "erased 6 contents (94 bytes) of 1 run: gone from the tables and their files ("
    assert call(cli.erase, "session-1/run-1", "--yes").startswith(done)
    assert call(cli.erase, "--finish") == "no erasure is unfinished\n"
    assert call(cli.rebuild) == "1 runs, 1 sessions, 4 rows\n"
