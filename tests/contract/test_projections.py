"""What readers see of a run's events (SPEC R3, R11-R13)."""

import pytest

from harness import events as e
from ledger.projections.orchestration import MAX_TRANSITIONS
from tests.ledger.scripted import EPOCH_US, LIMITS, ScriptedRun


@pytest.fixture
def run():
    return ScriptedRun()


@pytest.fixture
def trace_of(ledger):
    """The trace after some submissions."""

    async def trace(*submissions):
        for submission in submissions:
            ledger.journal.submit(submission).result()
        return await ledger.reader.trace(submission.session_id, submission.run_id)

    return trace


async def test_a_running_run_is_shown_as_far_as_it_got(run, trace_of):
    trace = await trace_of(run.start(agent="triage", agent_version="1.4", actor="u-1", environment="test"))
    summary = trace.run.summary
    assert (summary.status, summary.query, summary.agent_flow) == ("RUNNING", "What is wrong with host 7?", None)
    assert (trace.run.agent, trace.run.agent_version, trace.run.actor, trace.run.environment) == (
        "triage",
        "1.4",
        "u-1",
        "test",
    )
    assert (trace.run.ended_us, trace.run.elapsed_us, trace.run.outcome_reason) == (None, None, None)
    assert (trace.answer, trace.feedback, trace.self_evaluation) == (None, None, None)
    assert trace.run.limits == LIMITS


async def test_a_whole_run_is_shown_with_its_outcome_answer_and_counts(run, trace_of):
    trace = await trace_of(*run.whole())
    summary = trace.run.summary
    assert (summary.status, trace.run.outcome_reason, summary.agent_flow) == ("SUCCESS", "COMPLETED", "CHAT_GRAPH")
    assert (summary.step_count, summary.tool_call_count) == (1, 1)
    assert (trace.answer.text, summary.answer_preview) == ("The disk is full.", "The disk is full.")
    assert trace.run.usage == {
        "model_calls": 1,
        "tool_calls": 1,
        "tool:query_logs": 1,
        "input_tokens": 12,
        "output_tokens": 3,
        "run_bytes": len("What is wrong with host 7?") + len("query_logs") + len('["one","two"]'),
    }
    assert trace.run.event_count == run.events_made
    assert trace.run.elapsed_us == run.events_made * 1_000
    assert trace.chat_session.message_pair_count == 1


async def test_a_step_is_one_row_with_its_attempts_counted_inside(run, trace_of):  # R3
    first = run.attempt("model", "router", ordinal=1, attempt=1, model="rules-1")
    second = run.attempt("model", "router", ordinal=1, attempt=2, model="rules-1")
    trace = await trace_of(
        run.start(),
        first.start(),
        first.fail(will_retry=True, usage={"input_tokens": 5}),
        second.start(),
        second.succeed(usage={"input_tokens": 7, "output_tokens": 2}),
    )
    (step,) = trace.agent_steps
    assert (step.boundary, step.attempt_count, step.status) == ("model/router/1", 2, "SUCCESS")
    assert (step.input_tokens, step.output_tokens) == (12, 2)
    assert (step.failure, step.error.text) == ("TRANSPORT", "connection refused")
    # From the third event of the run to the eighth, as the monotonic clock had it.
    assert step.duration_us == 5_000


async def test_a_step_of_which_no_usage_is_known_says_unknown_and_not_zero(run, trace_of):  # H4a
    step = run.attempt("model", "planner")
    trace = await trace_of(run.start(), step.start(), step.succeed(usage=None))
    (row,) = trace.agent_steps
    assert (row.input_tokens, row.output_tokens) == (None, None)
    assert trace.run.usage_unknown_count == 1
    assert "input_tokens" not in trace.run.usage


async def test_a_step_whose_retry_never_came_has_failed(run, trace_of):
    step = run.attempt("model", "router")
    end = run.end("CANCELLED", "USER_REQUESTED")
    trace = await trace_of(run.start(), step.start(), step.fail(will_retry=True), end)
    assert [row.status for row in trace.agent_steps] == ["FAILED"]


async def test_a_guard_makes_no_row(run, trace_of):
    guard = run.attempt("guard", "evidence_guard")
    trace = await trace_of(run.start(), guard.start(), guard.succeed(True))
    assert (trace.agent_steps, trace.tool_invocations) == ((), ())


async def test_each_attempt_of_a_tool_is_an_invocation_even_with_a_call_id_that_repeats(run, trace_of):  # CASES 24
    calls = [run.attempt("tool", "query_logs", call_id="call_0") for _ in range(2)]
    trace = await trace_of(run.start(), *(one for call in calls for one in (call.start(), call.succeed())))
    assert [(row.invocation_no, row.attempt_id, row.call_id) for row in trace.tool_invocations] == [
        (1, "a1", "call_0"),
        (2, "a2", "call_0"),
    ]


async def test_refused_work_is_no_invocation_and_the_run_says_what_ran_out(run, trace_of):  # R3
    figures = {"resource": "tool_calls", "amount": 1, "used": 6, "limit": 6}
    rejected = run.event(e.ReservationRejected, boundary="tool/x/7/1", kind="tool", name="x", **figures)
    end = run.end("BUDGET_EXHAUSTED", "BUDGET_EXHAUSTED", resource="tool_calls", used=6, limit=6)
    trace = await trace_of(run.start(), run.submission(rejected), end)
    assert trace.tool_invocations == ()
    assert trace.run.refused == figures | {"boundary": "tool/x/7/1"}
    assert trace.run.summary.status == "BUDGET_EXHAUSTED"


async def test_a_late_result_marks_the_invocation_late_and_changes_nothing_else(run, trace_of):  # CASES 17
    tool = run.attempt()
    ended = await trace_of(run.start(), tool.start(), tool.abandon(), run.end("TIMED_OUT", "DEADLINE_EXCEEDED"))
    late = await trace_of(tool.finish_late())
    assert [row.status for row in ended.tool_invocations] == ["ABANDONED"]
    assert [(row.status, row.duration_us) for row in late.tool_invocations] == [("LATE", 90_000)]
    assert (late.run.summary.status, late.run.ended_us) == ("TIMED_OUT", ended.run.ended_us)


async def test_usage_that_comes_late_is_counted_and_leaves_the_step_abandoned(run, trace_of):  # E6
    step = run.attempt("model", "planner")
    usage = {"input_tokens": 4, "output_tokens": 1}
    trace = await trace_of(
        run.start(), step.start(), step.abandon(), run.end("TIMED_OUT", "DEADLINE_EXCEEDED"), step.finish_late(usage)
    )
    (row,) = trace.agent_steps
    assert (row.status, row.input_tokens, row.output_tokens) == ("ABANDONED", 4, 1)
    assert trace.run.usage["input_tokens"] == 4


async def test_a_call_that_a_policy_denied_is_no_invocation_and_is_counted(run, trace_of):  # R3
    trace = await trace_of(run.start(), run.decide(allowed=False), run.decide(allowed=True))
    assert (trace.tool_invocations, trace.run.summary.tool_call_count) == ((), 0)
    assert trace.run.incidents == {"calls_denied": 1}


async def test_what_a_scope_refused_is_its_affair_and_the_run_names_no_limit(run, trace_of):  # D5
    step = run.attempt("model", "planner", scope_id="s1")
    figures = {"resource": "model_calls", "amount": 1, "used": 1, "limit": 1, "scope_id": "s1"}
    refused = run.event(e.ReservationRejected, boundary="planner/model/planner/2/1", kind="model", name="p", **figures)
    trace = await trace_of(
        run.start(),
        run.open_scope("s1", model_calls=1),
        step.start(),
        step.succeed(usage={"input_tokens": 4, "output_tokens": 1}),
        run.submission(refused),
        run.exhaust_scope("s1"),
        run.close_scope("s1"),
        run.end(),
    )
    assert (trace.run.refused, trace.run.summary.status) == (None, "SUCCESS")
    assert trace.run.incidents == {"scopes_exhausted": 1}
    assert trace.run.usage["model_calls"] == trace.run.summary.step_count == 1


async def test_limits_that_are_only_observed_are_told_apart_from_those_that_hold(run, trace_of):  # D13
    limits = {"model_calls": 8, "observe:tool_calls": 1, "observe:tool_default": 2}
    calls = [run.attempt() for _ in range(2)]
    trace = await trace_of(run.start(limits=limits), *(call.start() for call in calls), calls[1].pass_observed())
    assert trace.run.limits == {"model_calls": 8}
    assert trace.run.observed_limits == {"tool_calls": 1, "tool_default": 2}
    assert (trace.run.summary.tool_call_count, trace.run.incidents) == (2, {"limits_passed": 1})


async def test_what_is_reserved_is_told_until_it_is_settled(run, trace_of):  # H4
    reserve = {"input_tokens": 500, "output_tokens": 100, "total_tokens": 600, "cost_micros": 1_200}
    first, second = (run.attempt("model", f"m{number}") for number in range(2))
    begun = await trace_of(
        run.start(currency="USD", price_table="2026-11"), first.start(reserve=reserve), second.start(reserve=reserve)
    )
    assert (begun.run.currency, begun.run.price_table) == ("USD", "2026-11")
    assert begun.run.reserved == {key: 2 * amount for key, amount in reserve.items()}
    assert begun.run.usage["cost_micros"] == 2_400
    usage = {"input_tokens": 420, "output_tokens": 30, "cost_micros": 900}
    settled = await trace_of(first.succeed(usage=usage))
    assert settled.run.reserved == reserve
    assert settled.run.usage["total_tokens"] == 450 + 600
    assert [step.cost_micros for step in settled.agent_steps] == [900, None]
    lost = await trace_of(second.abandon(), run.end("TIMED_OUT", "DEADLINE_EXCEEDED"))
    assert lost.run.reserved == reserve
    assert (lost.run.usage_unknown_count, lost.run.cost_unknown_count) == (1, 1)


async def test_a_step_costs_what_all_its_attempts_cost(run, trace_of):
    first, second = (run.attempt("model", "router", ordinal=1, attempt=number) for number in (1, 2))
    trace = await trace_of(
        run.start(currency="USD"),
        first.start(),
        first.fail(will_retry=True, usage={"cost_micros": 40}),
        second.start(),
        second.succeed(usage={"cost_micros": 2}),
    )
    assert trace.agent_steps[0].cost_micros == 42


async def test_a_hidden_retry_is_counted_on_its_step_or_tool_and_in_the_run(run, trace_of):  # H7
    step, tool, guard = run.attempt("model", "m"), run.attempt("tool", "t"), run.attempt("guard", "g")
    trace = await trace_of(
        run.start(),
        *(attempt.start() for attempt in (step, tool, guard)),
        step.retry_unseen(2, {"model_calls": 1}),
        step.retry_unseen(3, {"model_calls": 1}),
        tool.retry_unseen(),
        guard.retry_unseen(),
    )
    assert [row.hidden_retry_count for row in (*trace.agent_steps, *trace.tool_invocations)] == [2, 1]
    assert trace.run.incidents == {"hidden_retries": 4}
    assert trace.run.usage["model_calls"] == 4  # two attempts that are charged so, and two requests


@pytest.mark.parametrize("kind", ["model", "tool"])
async def test_a_hidden_retry_that_is_seen_after_the_end_is_counted_too(run, trace_of, kind):  # E6
    attempt = run.attempt(kind, "slow")
    await trace_of(run.start(), attempt.start(), attempt.abandon(), run.end("TIMED_OUT", "DEADLINE_EXCEEDED"))
    trace = await trace_of(attempt.retry_unseen(usage={"model_calls": 1}))
    (row,) = trace.agent_steps or trace.tool_invocations
    assert (row.status, row.hidden_retry_count) == ("ABANDONED", 1)
    assert (trace.run.incidents, trace.run.summary.status) == ({"hidden_retries": 1}, "TIMED_OUT")


async def test_a_stream_says_when_its_first_chunk_came_and_how_many_there_were(run, trace_of):
    whole, cut = run.attempt("model", "writer"), run.attempt("model", "writer")
    trace = await trace_of(
        run.start(),
        whole.start(),
        whole.succeed(first_output_us=320_000, output_chunks=41),
        cut.start(),
        cut.fail("CANCELLED", first_output_us=300_000, output_chunks=2),
    )
    assert [(row.status, row.first_output_us, row.output_chunks) for row in trace.agent_steps] == [
        ("SUCCESS", 320_000, 41),
        ("FAILED", 300_000, 2),
    ]


async def test_an_attempt_that_was_out_of_time_says_so_and_how_long_it_had(run, trace_of):
    step, tool = run.attempt("model", "slow", timeout_us=2_500_000), run.attempt("tool", "slow", timeout_us=400_000)
    trace = await trace_of(run.start(), step.start(), step.fail("TIMEOUT"), tool.start(), tool.fail("TIMEOUT"))
    rows = (*trace.agent_steps, *trace.tool_invocations)
    assert [(row.failure, row.timeout_us) for row in rows] == [("TIMEOUT", 2_500_000), ("TIMEOUT", 400_000)]


async def test_a_run_with_nothing_out_of_the_ordinary_says_nothing_of_it(run, trace_of, plain):  # D18
    await trace_of(*run.whole())
    row = plain().execute("SELECT currency, price_table, reserved, incidents FROM diagnosis_run").fetchone()
    assert row == (None, None, None, None)


async def test_scope_and_boundary_are_those_of_the_event(run, trace_of):  # D7
    tool = run.attempt()
    tool.boundary = "executor.2/batch%2F1/tool/query_logs/1/1"
    trace = await trace_of(run.start(), tool.start())
    assert [(row.scope, row.boundary) for row in trace.tool_invocations] == [("executor.2/batch%2F1", tool.boundary)]


async def test_the_graph_is_traced_as_it_really_went(run, trace_of):  # R11
    trace = await trace_of(
        run.start(),
        run.transition("planner"),
        run.transition("executor", "planner"),
        run.transition("planner", "executor", cause="REPAIR"),
        run.transition("fallback", "planner", cause="FALLBACK"),
        run.finish_graph("fallback", degraded=True),
        run.end(),
    )
    assert trace.run.orchestration_trace == {
        "version": 1,
        "transitions": [
            {"n": 1, "from": None, "to": "planner", "cause": "NEXT"},
            {"n": 2, "from": "planner", "to": "executor", "cause": "NEXT"},
            {"n": 3, "from": "executor", "to": "planner", "cause": "REPAIR"},
            {"n": 4, "from": "planner", "to": "fallback", "cause": "FALLBACK"},
        ],
        "transitionCount": 4,
        "truncated": False,
        "finalNode": "fallback",
        "terminationReason": "COMPOSED",
        "degraded": True,
        "evidenceRetryCount": 1,
    }
    assert trace.run.degraded


async def test_a_run_that_failed_within_its_graph_has_a_partial_trace(run, trace_of):  # R11
    trace = await trace_of(run.start(), run.transition("planner"), run.end("FAILED", "UNHANDLED_EXCEPTION"))
    graph = trace.run.orchestration_trace
    assert [transition["to"] for transition in graph["transitions"]] == ["planner"]
    assert (graph["finalNode"], graph["terminationReason"], graph["degraded"]) == (None, "UNHANDLED_EXCEPTION", False)


async def test_a_run_without_a_graph_has_no_trace_of_one(run, trace_of):  # R13
    flow = run.submission(run.event(e.FlowSelected, boundary="flow/x/1/1", flow="CHAT_SIMPLE"))
    trace = await trace_of(run.start(), flow, run.answer(), run.end())
    assert trace.run.orchestration_trace is None
    assert trace.run.summary.agent_flow == "CHAT_SIMPLE"


async def test_a_graph_that_runs_in_circles_is_truncated_and_counted(run, trace_of):  # R11
    turns = [run.transition("node", "node").events[0] for _ in range(MAX_TRANSITIONS + 7)]
    trace = await trace_of(run.start(), run.submission(*turns), run.finish_graph("node"))
    graph = trace.run.orchestration_trace
    assert (len(graph["transitions"]), graph["transitionCount"], graph["truncated"]) == (200, 207, True)


async def test_the_trace_of_a_graph_holds_no_content(run, trace_of, plain):  # R12
    await trace_of(*run.whole())
    (text,) = plain().execute("SELECT orchestration_trace FROM diagnosis_run").fetchone()
    for word in ("OOM", "Which logs", "disk", "one", "two"):
        assert word not in text.replace("version", "")


async def test_a_session_counts_answers_and_is_as_old_as_its_first_run(ledger, clock):  # R1
    runs = [ScriptedRun(f"run-{number}") for number in range(3)]
    for run in runs[:2]:
        for submission in run.whole():
            ledger.journal.submit(submission).result()
    ledger.journal.submit(runs[2].start()).result()
    session = await ledger.reader.session("session-1")
    assert (session.message_pair_count, session.created_us, session.expires_us) == (2, EPOCH_US + 1_000, None)
    assert session.last_active_us == EPOCH_US + runs[0].events_made * 1_000


async def test_json_columns_hold_canonical_text_and_sql_null(run, trace_of, plain):  # D18
    await trace_of(run.start(labels={"b": "1", "a": "2"}))
    row = plain().execute("SELECT labels, limits, orchestration_trace, feedback FROM diagnosis_run").fetchone()
    assert row == ('{"a":"2","b":"1"}', '{"model_calls":100,"run_bytes":1000000,"tool_calls":100}', None, None)
