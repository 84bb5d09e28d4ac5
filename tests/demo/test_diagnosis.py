"""From evidence to one cause: what is news counts, what is over or only follows does not."""

import pytest

from demo.rules.causes import CAUSE_PATTERNS
from demo.rules.diagnosis import diagnose
from demo.rules.results import Result

PATTERN = next(iter(CAUSE_PATTERNS))
HOST = {
    "cpu": {"cpu_count": 4, "used_percent": 9.0, "iowait_percent": 0.1, "watched_s": 1.0},
    "memory": {"total_bytes": 8, "used_bytes": 4, "available_bytes": 4, "used_percent": 50.0},
    "load": {"load_1m": 0.1, "load_5m": 0.1, "load_15m": 0.1, "per_cpu_1m": 0.1},
    "disks": [],
}
POOL = "ERROR connection pool exhausted: 10 of 10 in use"
NAMES = "ERROR could not resolve host: db.internal"


def told(*lines, **host):
    """The diagnosis from these lines, each `file, time, text`, on a machine with these figures."""
    matches = [
        {"file": f"{file}/{file}.log", "line_no": number, "text": f"2026-03-01T{at}Z {text}"}
        for number, (file, at, text) in enumerate(lines)
    ]
    searched = {"pattern": PATTERN, "match_count": len(matches), "matches": matches, "files_searched": 2}
    return diagnose([Result("host_metrics", {}, {**HOST, **host}), Result("search_logs", {}, searched)])


def test_signs_of_late_are_the_cause():
    found = told(("shop", "12:00:00", POOL), ("shop", "12:05:00", POOL))
    assert (found.label, found.what, found.sign_count) == ("connection pool exhausted", "`shop`", 2)


def test_one_sign_alone_is_the_daily_round():
    assert told(("shop", "12:00:00", POOL)).label == "nothing is wrong"


def test_signs_of_long_ago_are_history():
    found = told(("shop", "09:00:00", POOL), ("shop", "09:05:00", POOL), ("shop", "12:00:00", "INFO all is well"))
    assert found.label == "nothing is wrong"


def test_what_has_recovered_in_its_own_file_is_over():
    signs = [("shop", "12:00:00", POOL), ("shop", "12:01:00", POOL)]
    assert told(*signs, ("shop", "12:09:00", "INFO connection pool recovered")).label == "nothing is wrong"
    assert told(*signs, ("cart", "12:09:00", "INFO connection pool recovered")).label == "connection pool exhausted"
    assert told(("shop", "11:59:00", "INFO connection pool recovered"), *signs).label == "connection pool exhausted"


def test_what_only_follows_is_not_the_cause():
    lines = [("shop", f"12:0{minute}:00", text) for minute in range(3) for text in (POOL, NAMES)]
    assert (told(*lines).label, told(*lines).what) == ("DNS failure", "`db.internal`")


def test_many_errors_that_nothing_explains_are_no_good_news():
    found = told(*(("shop", f"12:0{minute}:00", "ERROR frobnicator jammed") for minute in range(6)))
    assert (found.label, found.sign_count) == ("unknown", 6)


def test_without_figures_or_logs_nothing_is_said_to_be_well():
    assert diagnose([]).label == "unknown"
    assert diagnose([Result("host_metrics", {}, HOST)]).label == "unknown"
    unread = {"pattern": PATTERN, "match_count": 0, "matches": [], "files_searched": 0}
    assert diagnose([Result("host_metrics", {}, HOST), Result("search_logs", {}, unread)]).label == "unknown"


@pytest.mark.parametrize(("before", "after", "label"), [(0, 4, "bad deploy"), (3, 4, "unknown"), (0, 2, "unknown")])
def test_a_new_version_is_the_cause_of_errors_that_begin_with_it_alone(before, after, label):
    errors = [("shop", f"11:5{minute}:00", "ERROR KeyError: 'zone'") for minute in range(before)]
    errors += [("shop", f"12:0{minute + 1}:00", "ERROR KeyError: 'zone'") for minute in range(after)]
    noise = [("cart", f"12:0{minute}:30", "ERROR frobnicator jammed") for minute in range(6)]
    found = told(("sys", "12:00:00", "deployed shop 1.2.3 (was 1.2.2)"), *errors, *noise)
    assert found.label == label
