"""From events to spans."""

from harness import events as e
from ledger.reading.parts import RunPart
from tests.viewer.example_runs import LIMITS, astray_run, budget_run, degraded_run, running_run
from tests.viewer.fake_run import FakeRun
from viewer.present.timeline.spans import spans_of
from viewer.present.timeline.works import spans_of_works


def of(run: FakeRun):
    return spans_of(run.events, run.tools, run.steps.values())


def a_run() -> FakeRun:
    return FakeRun("s", "r", "q", dict(LIMITS)).start()


def test_each_attempt_is_a_span_of_its_own_and_the_wait_between_them_too():
    router = [span for span in of(budget_run()) if span.scope == ("intent_router",)]
    assert [(span.kind, span.state, span.start_us, span.end_us) for span in router] == [
        ("model", "failed", 30_000, 120_000),
        ("wait", "wait", 120_000, 180_000),
        ("model", "ok", 180_000, 310_000),
    ]
    assert [span.note for span in router] == [
        "attempt 1 of 2 · connection failed",
        "60 ms",
        "attempt 2 of 2 · 96 in · 12 out",
    ]


def test_work_that_a_limit_refused_takes_no_time_and_names_the_limit():
    refused = of(budget_run())[-1]
    assert (refused.state, refused.start_us, refused.end_us) == ("refused", 4_171_000, 4_171_000)
    assert refused.note == "refused · 5 of 5 used"


def test_a_refusal_by_a_limit_that_is_not_the_tools_own_says_which():
    run = a_run()
    run.refuse(10, "query_logs", resource="tool_calls", used=20, limit=20)
    assert of(run)[0].note == "refused · tool calls: 20 of 20 used"


def named(run, name, **states):
    found = [span for span in of(run) if span.name == name]
    return [span for span in found if all(getattr(span, key) == value for key, value in states.items())]


def test_work_that_a_scope_refused_says_so():  # D5
    (refused,) = named(astray_run(), "critic", state="refused")
    assert refused.note == "refused by its scope · model calls: 1 of 1 used"


def test_a_refusal_at_the_deadline_is_told_as_time():
    run = a_run()
    run.refuse(10, "late", resource="deadline_us", used=60_000_100, limit=60_000_000)
    assert of(run)[0].note == "refused · time: 1 min of 1 min used"


def test_one_call_too_often_names_the_call():
    run = a_run()
    run.refuse(10, "query_logs", resource="repeat:query_logs", used=3, limit=3)
    assert of(run)[0].note == "refused · the same query_logs call: 3 of 3 used"


def test_a_call_that_a_policy_denied_took_no_time_and_names_policy_and_reason():
    (denied,) = named(astray_run(), "rollback")
    assert (denied.state, denied.start_us, denied.end_us) == ("denied", 2_560_000, 2_560_000)
    assert denied.note == "denied by tool_rules · effect not allowed"


def test_a_call_that_a_policy_allowed_is_no_span_of_its_own():
    run = a_run()
    run.decide(10, "query_logs", allowed=True)
    assert of(run) == []


def test_work_that_was_let_past_an_observed_limit_is_marked_and_nothing_else_is():  # D13
    (marked,) = [span for span in named(astray_run(), "query_logs") if span.is_suspect]
    assert (marked.state, marked.note) == ("ok", "only observed: query_logs: 2 of 2 used · deploy")


def test_an_observed_limit_that_was_passed_before_marks_only_what_asks_for_more_of_it():  # D13
    run = a_run()
    figures = {"kind": "model", "name": "m", "resource": "output_tokens", "used": 120, "limit": 100}
    for number, amount in enumerate((0, 0, 30), 1):
        attempt = {"boundary": f"model/m/{number}/1", "attempt_id": f"a{number}"}
        run.add(e.LimitWouldReject, number, **attempt, **figures, amount=amount)
        start = {"kind": "model", "name": "m", "operation": "DIAGNOSIS_AGENT", "attempt": 1, "max_attempts": 1}
        run.add(e.AttemptStarted, number, **attempt, **start)
    assert [span.is_suspect for span in of(run)] == [True, False, True]


def test_bytes_that_were_let_past_an_observed_limit_are_a_mark_of_their_own():  # D13
    run = a_run()
    figures = {"resource": "run_bytes", "amount": 9, "used": 2_000, "limit": 2_000}
    run.add(e.LimitWouldReject, 10, boundary="capacity/report/1/1", kind="capacity", name="report", **figures)
    (span,) = of(run)
    assert (span.state, span.is_suspect) == ("passed", True)
    assert span.note == "only observed: run bytes: 2.0 kB of 2.0 kB used"


def test_hidden_requests_are_a_warning_on_their_attempt_also_when_they_are_seen_late():  # H7
    run = astray_run()
    (planner,) = named(run, "planner")
    assert (planner.state, planner.is_suspect, planner.note) == ("ok", True, "two hidden requests · 900 in · 120 out")
    started = next(event for event in run.events if event.type == "attempt.started")
    same = {key: started.fields[key] for key in ("boundary", "attempt_id")}
    run.add(e.HiddenRetryDetected, None, **same, request=4)
    assert named(run, "planner")[0].note.startswith("three hidden requests")


def test_a_stream_says_when_its_first_output_came():
    (composer,) = named(astray_run(), "composer")
    assert (composer.start_us, composer.first_us) == (3_150_000, 3_790_000)
    assert composer.note == "first output after 640 ms · 1,610 in · 402 out"


def test_an_attempt_that_was_out_of_its_own_time_says_how_long_it_had():
    run = a_run()
    run.model(10, 40, "slow", failure="TIMEOUT", timeout_ms=30)
    run.model(50, 90, "slower", failure="TIMEOUT")
    assert [span.note for span in of(run)] == ["stopped after its 30 ms", "no answer in time"]


def test_a_failed_tool_says_what_its_exception_said_and_which_arguments_it_had():
    failed = next(span for span in of(budget_run()) if span.kind == "tool" and span.state == "failed")
    assert failed.note == "kernel · kern.log: permission denied"


def test_an_attempt_without_an_end_is_running():
    last = of(running_run())[-1]
    assert (last.name, last.state, last.end_us) == ("query_logs", "running", None)


def test_unknown_tokens_are_said_to_be_unknown():
    planner = next(span for span in of(degraded_run()) if span.kind == "model")
    assert planner.note == "tokens unknown"


def test_a_guard_that_found_nothing_is_told_apart_from_one_that_was_content():
    guards = [span for span in of(degraded_run()) if span.kind == "guard"]
    assert [(span.state, span.note) for span in guards] == [("failed", "no evidence")] * 2


def test_an_abandoned_attempt_that_ends_late_is_shown_as_late():
    run = a_run()
    run.tool(10, 100, "slow", {}, abandoned=True)
    same = {"boundary": run.tools[0].boundary, "attempt_id": run.tools[0].attempt_id}
    assert of(run)[0].state == "abandoned"
    assert of(run)[0].note == "abandoned: thread not stopped"
    run.add(e.AttemptFinishedLate, 900, **same, duration_us=890_000, succeeded=True)
    assert (of(run)[0].state, of(run)[0].end_us) == ("late", 900_000)
    assert of(run)[0].note == "succeeded late, after 890 ms"


def test_an_attempt_that_nobody_knows_the_end_of_has_none():
    run = a_run()
    run.tool(10, None, "lost", {})
    same = {"boundary": run.tools[0].boundary, "attempt_id": run.tools[0].attempt_id}
    run.add(e.AttemptAbandoned, None, **same, reason="HARNESS_LOST")
    assert (of(run)[0].state, of(run)[0].end_us) == ("abandoned", None)


def test_a_failed_step_says_what_its_exception_said():
    run = a_run()
    run.model(10, 20, "planner", failure="UNKNOWN", said="the model is on holiday")
    assert of(run)[0].note == "the model is on holiday"


def test_an_end_whose_start_is_not_among_the_events_is_left_out():
    run = budget_run()
    assert len(spans_of(run.events[10:])) < len(spans_of(run.events))


def test_a_run_too_long_for_its_events_is_drawn_from_its_rows():
    trace = budget_run().trace()
    spans = spans_of_works(RunPart.of(trace).works)
    assert len(spans) == len(trace.agent_steps) + len(trace.tool_invocations)
    assert spans[0].scope == ("intent_router",)
    assert [span.start_us for span in spans] == sorted(span.start_us for span in spans)
