"""Nested scopes: what they were limited to, what they used, and where they are drawn (SPEC D5)."""

from harness import events as e
from ledger.words.places import Level, indent, levels, place
from tests.viewer.example_runs import LIMITS, astray_run, priced_run
from tests.viewer.fake_run import FakeRun
from viewer.present.timeline.groups import gather
from viewer.present.timeline.scopes import scopes_of
from viewer.present.timeline.spans import spans_of


def a_run() -> FakeRun:
    return FakeRun("s", "r", "q", dict(LIMITS)).start()


def test_a_scope_tells_what_was_used_of_each_of_its_limits():  # D5
    deploys, _ = scopes_of(astray_run().events)
    assert deploys.label == "deploys"
    assert deploys.words == "4 of 4 model calls · 3 of 6 tool calls · 0.00548 of 0.02 cost · at most 4.00 s"
    assert (deploys.start_us, deploys.end_us, deploys.exhausted) == (40_000, 2_520_000, None)


def test_a_scope_that_was_exhausted_says_so_first_and_leads_to_the_event():  # D5, D13
    run = astray_run()
    second = scopes_of(run.events)[1]
    assert second.words == "exhausted · model calls: 1 of 1 used · 96 of 80 output tokens (only observed)"
    assert run.events[second.seq - 1].type == "scope.exhausted"


def test_what_is_reserved_in_a_scope_counts_as_used_and_an_open_scope_has_no_end():
    (writer,) = scopes_of(priced_run().events)
    assert (writer.words, writer.end_us) == ("1,500 of 2,000 output tokens · at most 8.00 s", None)


def test_a_scope_that_its_time_ended_says_how_long_it_took():
    run = a_run()
    run.open_scope(10, "s1", "slow", timeout_ms=500, model_calls=3)
    run.exhaust_scope(520, "s1", resource="deadline_us", used=510_000, limit=500_000)
    assert scopes_of(run.events)[0].words == "exhausted · time: 510 ms of 500 ms used · 0 of 3 model calls"


def test_a_scope_that_was_never_left_ends_with_its_run():
    run = a_run()
    run.open_scope(10, "s1", "left open", model_calls=3)
    run.end(40, "FAILED", "HARNESS_LOST")
    assert scopes_of(run.events)[0].end_us == 40_000


def test_events_that_do_not_add_up_leave_a_scope_its_limits_and_no_figures():
    run = a_run()
    run.open_scope(10, "s1", "odd", model_calls=3, repeated_calls=2)
    run.add(e.ScopeClosed, 20, boundary="scope/none/1/1", scope_id="unknown")
    assert scopes_of(run.events)[0].words == "at most 3 model calls · at most 2 times the same call"


def test_a_scope_is_four_segments_of_a_path_and_everything_else_is_a_branch():  # D7
    path = ["executor.2", "scope", "planner", "2", "1", "b.1", "b.2"]
    assert levels(path) == [
        Level("executor.2", False),
        Level("planner.2", True),
        Level("b.1", False),
        Level("b.2", False),
    ]
    assert [level.label for level in place(path)] == ["executor.2", "planner.2", "b.1"]
    assert [level.label for level in levels(["scope", "x", "y"])] == ["scope", "x", "y"]


def test_a_batch_is_one_level_in_which_each_call_has_its_number():  # D6
    path = ["executor.2", "batch", "tools", "2", "1", "0"]
    assert [level.label for level in levels(path)] == ["executor.2", "batch.2", "0"]
    assert [level.label for level in place(path)] == ["executor.2"]
    assert (indent(path), indent(path[:1]), indent([])) == (2, 1, 0)


def test_scopes_are_groups_within_their_node_in_the_order_of_what_happened():
    run = astray_run()
    parts = gather(spans_of(run.events, run.tools), scopes_of(run.events))
    assert [(part.label, part.depth, part.is_continued, [span.name for span in part.spans]) for part in parts] == [
        ("investigate.1", 0, False, []),
        ("deploys", 1, False, ["planner", "query_logs", "query_logs"]),
        ("second look", 2, False, ["critic", "critic"]),
        ("deploys", 1, True, ["query_logs"]),
        ("investigate.1", 0, True, ["rollback", "query_metrics"]),
        ("composer.2", 0, False, ["composer"]),
    ]


def test_a_scope_in_which_nothing_was_done_is_there_all_the_same():
    run = a_run()
    run.open_scope(10, "s1", "idle", model_calls=1)
    run.close_scope(30, "s1")
    (part,) = gather([], scopes_of(run.events))
    assert (part.label, part.start_us, part.end_us, part.spans) == ("idle", 10_000, 30_000, [])


def test_two_scopes_of_one_name_are_two_groups():
    run = a_run()
    for ordinal in (1, 2):
        run.open_scope(ordinal * 10, f"s{ordinal}", "try", ordinal=ordinal, model_calls=1)
        run.model(ordinal * 10, ordinal * 10 + 5, "m", scope=f"scope/try/{ordinal}/1", scope_id=f"s{ordinal}")
        run.close_scope(ordinal * 10 + 6, f"s{ordinal}")
    parts = gather(spans_of(run.events), scopes_of(run.events))
    assert [(part.label, len(part.spans)) for part in parts] == [("try", 1), ("try.2", 1)]
