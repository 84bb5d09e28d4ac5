"""A report on a period: who is in it, what is counted, and that anybody can check it."""

import csv
import io
import json
from dataclasses import replace
from hashlib import sha256

from harness import events as e
from ledger.audit.report import Sample, Sheet, Wanted, gathering, read_report
from ledger.audit.report.tally import NAMES, OUTCOMES
from ledger.cli.common import plain
from ledger.words.format import instant
from tests.ledger.scripted import EPOCH_US, ScriptedRun

HOUR_US = 3_600_000_000
ALWAYS = Wanted(0, EPOCH_US + 1_000 * HOUR_US)


async def report_of(reader, wanted=ALWAYS, size=3, seed="1", file=None):
    return await read_report(reader, wanted, Sample(size, seed), Sheet(file), EPOCH_US)


def record(ledger, *submissions):
    for submission in submissions:
        ledger.journal.submit(submission).result()


def kinds(report, name):
    return {kind: number for kind, number in report.figures[name].kinds if number}


def plain_run(number, *, agent="triage", version="1.4", epoch_us=None):
    """A whole run that starts in hour `number`, a millisecond after it struck."""
    run = ScriptedRun(f"run-{number}", f"session-{number % 2}", epoch_us=EPOCH_US + number * HOUR_US)
    step = run.attempt("model", "planner")
    yield run.start(agent=agent, agent_version=version, flow="CHAT_GRAPH", currency="EUR", price_table="2026")
    yield step.start()
    yield step.succeed(usage={"input_tokens": 5, "output_tokens": 2, "cost_micros": 7})
    yield run.end()


async def test_what_did_not_happen_is_nothing_and_not_left_out(ledger):
    report = await report_of(ledger.reader)
    assert tuple(report.figures) == NAMES
    assert {figures.total for figures in report.figures.values()} == {0}
    assert {kind[0] for kind, _ in report.figures["outcomes"].kinds} == set(OUTCOMES)
    assert (report.run_count, report.open_count, report.sample, report.keys) == (0, 0, (), ())


async def test_a_period_has_the_runs_that_started_in_it_half_open(ledger, monkeypatch):
    monkeypatch.setattr(gathering, "PAGE_RUNS", 2)
    for number in range(7):
        record(ledger, *plain_run(number))
    starts = [EPOCH_US + number * HOUR_US + 1_000 for number in range(7)]
    report = await report_of(ledger.reader, Wanted(starts[1], starts[6]), size=99)
    assert report.run_count == 5
    assert {run.run_id for run in report.sample} == {f"run-{number}" for number in range(1, 6)}
    assert report.usage["input_tokens"] == 25
    assert report.usage["cost_micros:EUR"] == 35
    assert (await report_of(ledger.reader, Wanted(starts[1] + 1, starts[6] + 1))).run_count == 5


async def test_a_report_may_be_of_one_agent_or_one_version_of_it(ledger):
    record(ledger, *plain_run(1), *plain_run(2, version="2"), *plain_run(3, agent="other"))
    for agent, version, run_count in (("triage", None, 2), ("triage", "2", 1), ("other", "2", 0), (None, None, 3)):
        report = await report_of(ledger.reader, Wanted(0, ALWAYS.to_us, agent, version))
        assert report.run_count == run_count


async def test_everything_that_a_plain_course_does_not_have_is_counted_by_kind(ledger, monkeypatch):
    monkeypatch.setattr(gathering, "PAGE_EVENTS", 2)
    run, cancelled, still_open = (ScriptedRun(f"run-{number}") for number in range(3))
    step, tool = run.attempt("model", "planner"), run.attempt()
    figures = {"kind": "tool", "name": "query_logs", "resource": "tool_calls", "amount": 1, "used": 2, "limit": 2}
    refused = run.event(e.ReservationRejected, boundary="tool/query_logs/3/1", **figures)
    not_again = step.event(e.RetryRefused, failure="TRANSPORT", reason="DEADLINE_EXCEEDED")
    record(ledger, run.start(), run.open_scope("inner", model_calls=1), step.start(), step.retry_unseen())
    record(ledger, step.retry_unseen(3), step.fail(), run.submission(not_again), tool.start(), tool.pass_observed())
    record(ledger, tool.succeed(), run.exhaust_scope("inner"), run.decide(), run.decide(allowed=True))
    record(ledger, run.transition("composer"), run.finish_graph(degraded=True), run.submission(refused))
    record(ledger, run.end("BUDGET_EXHAUSTED", "BUDGET_EXHAUSTED", resource="tool_calls", used=2, limit=2))
    record(ledger, cancelled.start())
    await ledger.cancel("session-1", "run-1", actor="op-7")
    record(ledger, cancelled.signal_cancellation("USER_REQUESTED"), cancelled.end("CANCELLED", "USER_REQUESTED"))
    record(ledger, still_open.start())
    await ledger.erase(run=("session-1", "run-0"), actor="dpo-1", reason="USER_REQUEST")
    await ledger.record_system(e.AccessRecorded, action="READ", allowed=False, reason="EXPIRED", actor="op-1")
    await ledger.record_system(e.KeyCreated, key_id="k1", purpose="SIGN", algorithm="ED25519", actor="op-1")
    await ledger.record_system(
        e.KeyRotated, key_id="k2", replaced_key_id="k1", purpose="SIGN", algorithm="ED25519", fingerprint="0" * 64
    )
    report = await report_of(ledger.reader)
    assert kinds(report, "outcomes") == {
        ("BUDGET_EXHAUSTED", "BUDGET_EXHAUSTED"): 1,
        ("CANCELLED", "USER_REQUESTED"): 1,
        ("RUNNING", ""): 1,
    }
    assert (report.run_count, report.open_count) == (3, 1)
    assert kinds(report, "limits_that_ended_runs") == {("tool_calls",): 1}
    assert kinds(report, "work_refused") == {("tool_calls", "run"): 1}
    assert kinds(report, "scopes_exhausted") == {("model_calls",): 1}
    assert kinds(report, "limits_passed") == {("tool_calls",): 1}
    assert kinds(report, "calls_denied") == {("query_logs", "tool_rules", "EFFECT_NOT_ALLOWED"): 1}
    assert kinds(report, "retries_refused") == {("DEADLINE_EXCEEDED",): 1}
    assert kinds(report, "hidden_retries") == {("planner",): 2}
    assert kinds(report, "degraded_runs") == {("", ""): 1}
    assert kinds(report, "cancellations_asked_for") == {("USER_REQUESTED", "op-7"): 1}
    assert kinds(report, "cancellations_signalled") == {("USER_REQUESTED",): 1}
    assert report.figures["contents_erased"].total == 4
    assert kinds(report, "erasures_decided") == {("RUN", "USER_REQUEST", "dpo-1"): 1}
    assert kinds(report, "accesses") == {("READ", "refused: EXPIRED", "op-1"): 1}
    assert kinds(report, "decisions_about_the_ledger") == {("key.created", "op-1"): 1, ("key.rotated", ""): 1}
    assert [(key.key_id, key.fingerprint) for key in report.keys] == [("k2", "0" * 64)]
    assert {(run.run_id, run.cancel_asked_by, run.hidden_retries) for run in report.listed} == {
        ("run-0", None, 2),
        ("run-1", "op-7", 0),
        ("run-2", None, 0),
    }


async def test_a_run_that_recovery_ended_is_told_from_one_that_ended_itself(database, clock):  # E7
    async with await database.open(wall_clock=clock) as ledger:
        record(ledger, *plain_run(1), ScriptedRun("run-2").start())
    async with await database.open(wall_clock=clock) as ledger:
        report = await report_of(ledger.reader)
    assert kinds(report, "recovered_runs") == {("FAILED", "HARNESS_LOST"): 1}


async def test_the_sheet_has_every_run_and_its_digest_is_that_of_its_bytes(ledger, monkeypatch):
    monkeypatch.setattr(gathering, "PAGE_RUNS", 2)
    for number in range(3):
        record(ledger, *plain_run(number, agent="=1+1" if number == 1 else "triage"))
    file = io.BytesIO()
    report = await report_of(ledger.reader, file=file)
    assert sha256(file.getvalue()).hexdigest() == report.sheet_digest
    assert (await report_of(ledger.reader)).sheet_digest == report.sheet_digest
    rows = list(csv.DictReader(io.StringIO(file.getvalue().decode(), newline="")))
    assert [row["run_id"] for row in rows] == ["run-0", "run-1", "run-2"]
    assert rows[1]["agent"] == "'=1+1"  # a spreadsheet shows it, and reckons with nothing
    trace = await ledger.reader.overview("session-0", "run-2")
    assert (rows[2]["started"], rows[2]["head_link"]) == (instant(trace.run.started_us), trace.run.head_link)


async def test_the_sample_is_drawn_again_from_the_sheet_alone(ledger):
    for number in range(9):
        record(ledger, *plain_run(number))
    file = io.BytesIO()
    report = await report_of(ledger.reader, size=4, seed="audit 7", file=file)
    run_ids = [row["run_id"] for row in csv.DictReader(io.StringIO(file.getvalue().decode(), newline=""))]
    order = sorted(run_ids, key=lambda run_id: sha256(f"tachograph/sample/v1\0audit 7\0{run_id}".encode()).digest())
    assert [run.run_id for run in report.sample] == order[:4]


async def test_the_digest_of_a_report_is_that_of_its_data(ledger):
    record(ledger, *plain_run(1))
    report, again = await report_of(ledger.reader), await report_of(ledger.reader)
    # Events are given their places a little later in a database.
    assert report.digest == replace(again, event_count=report.event_count).digest
    data = json.dumps(plain(report), sort_keys=True, separators=(",", ":"))
    assert sha256(data.encode()).hexdigest() == report.digest
    record(ledger, *plain_run(2))
    assert (await report_of(ledger.reader)).digest != report.digest


async def test_it_is_told_how_many_runs_were_read_and_of_how_many(ledger, monkeypatch):
    monkeypatch.setattr(gathering, "PAGE_RUNS", 2)
    for number in range(5):
        record(ledger, *plain_run(number, version="2" if number else "1"))
    told = []
    wanted = Wanted(0, ALWAYS.to_us, "triage", "2")
    await read_report(ledger.reader, wanted, Sample(3, "1"), Sheet(), EPOCH_US, lambda *said: told.append(said))
    assert told == [(2, 4), (4, 4)]


async def test_of_many_runs_without_success_the_first_are_named_and_the_others_counted(ledger, monkeypatch):
    monkeypatch.setattr(gathering, "LISTED_MAX", 2)
    record(ledger, *(ScriptedRun(f"run-{number}").start() for number in range(5)))
    report = await report_of(ledger.reader)
    assert (len(report.listed), report.not_listed_count) == (2, 3)
