"""Steps and tools of a long run as spans: bounded in number, none lost, and told apart where they are looked at."""

from ledger.reading.parts import WorkLine
from viewer.present.timeline.window import Stretch
from viewer.present.timeline.works import PARTS, SINGLE_MAX, spans_of_works


def works(count, *, scopes=3, every_us=1_000, failed=()):
    return [
        WorkLine(
            "tool", n + 1, "query_logs", f"n.{n % scopes}", None, "read", "FAILED" if n in failed else "SUCCESS",
            n * every_us, every_us - 100, None,
        )
        for n in range(count)
    ]  # fmt: skip


def test_few_are_told_apart():
    spans = spans_of_works(works(SINGLE_MAX))
    assert len(spans) == SINGLE_MAX
    assert {span.count for span in spans} == {1}


def test_of_many_those_that_follow_closely_become_one_and_none_is_lost():
    many = works(32_843, failed=(77, 20_000))
    spans = spans_of_works(many)
    assert sum(span.count for span in spans) == 32_843
    assert len(spans) <= 4 * PARTS
    assert sum(span.state == "failed" for span in spans) == 2
    assert min(span.start_us for span in spans) == 0
    assert max(span.end_us for span in spans) == 32_843 * 1_000 - 100


def test_where_somebody_looks_closely_each_is_told_apart():
    many = works(32_843)
    spans = spans_of_works(many, Stretch(1_000_000, 1_100_000))
    near = [span for span in spans if span.start_us <= 1_100_000 and span.end_us >= 1_000_000]
    assert len([span for span in near if span.count == 1]) >= 100
    assert sum(span.count for span in spans) == 32_843


def test_what_is_still_open_is_never_part_of_another():
    many = [*works(3_000), WorkLine("model", 1, "planner", "n.0", "m", None, "RUNNING", 5, None, None)]
    assert [span.count for span in spans_of_works(many) if span.end_us is None] == [1]
