"""Topics of questions, and limits that figures are compared with."""

import json

import pytest
import re2  # type: ignore[import-untyped]

from demo.offline_model.answers import answer
from demo.rules.findings import Severity, count, findings, quoted, size
from demo.rules.results import Result, parse_result
from demo.rules.topics import LOGS, MEMORY, TOPICS, subject_of


def names(topics):
    return {topic.name for topic in topics}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Is any disk close to full, and how much memory is left?", {"disk", "memory"}),
        ("why does nginx not start", {"service"}),
        ("load average?", {"cpu"}),
        ("is the DNS broken", {"network"}),
        ("any errors?", {"logs"}),
        ("check this machine", {"disk", "memory", "cpu", "logs"}),
        ("a program that is cramped", set()),
        ("hello", set()),
    ],
)
def test_a_question_is_about_the_topics_it_names(question, expected):
    assert names(subject_of(question, ()).topics) == expected


@pytest.mark.parametrize(
    ("question", "carried"),
    [
        ("And what about its logs?", {"memory"}),
        ("and now?", {"memory"}),
        ("what does it mean", {"memory"}),
        ("And the disks?", set()),
        ("what do the logs say", set()),
    ],
)
def test_only_a_question_that_points_back_carries_a_topic_over(question, carried):
    assert (
        names(subject_of(question, ["How is the network?", "How much memory is left?", "thanks"]).carried_over)
        == carried
    )


def test_a_quotation_is_searched_for_and_names_no_topic():
    subject = subject_of("who wrote `disk is full` to the log", ())
    assert subject.quoted == ("disk is full",)
    assert names(subject.topics) == {"logs"}


@pytest.fixture(scope="module")
def error_pattern():
    options = re2.Options()
    options.case_sensitive = False
    return re2.compile(LOGS.log_pattern, options)


def test_every_topic_can_be_searched_for_in_linear_time():
    assert all(re2.compile(topic.log_pattern) for topic in TOPICS)


@pytest.mark.parametrize(
    "line",
    ["app: error: no", "[ERROR] no", "job failed.", "Failed to start", "level=error msg", "panic: x", "(fatal)"],
)
def test_a_line_that_reports_an_error_is_one(error_pattern, line):
    assert error_pattern.search(line)


@pytest.mark.parametrize("line", ["install libgpg-error0:amd64", "liberror-perl", "terrors", "errorless", "failover"])
def test_a_package_with_error_in_its_name_is_no_error(error_pattern, line):
    assert not error_pattern.search(line)


def measured(**sections):
    return [Result("host_metrics", {}, sections)]


def disk(used_percent, inodes_used_percent=1.0):
    return {
        "mount": "/",
        "free_bytes": 1,
        "total_bytes": 2,
        "used_percent": used_percent,
        "inodes_used_percent": inodes_used_percent,
    }


@pytest.mark.parametrize(
    ("used", "inodes", "severity"),
    [
        (79.9, 1.0, Severity.FINE),
        (80.0, 1.0, Severity.WATCH),
        (90.0, 1.0, Severity.ACT),
        (10.0, 95.0, Severity.ACT),
        (10.0, None, Severity.FINE),
    ],
)
def test_a_disk_is_judged_by_the_fuller_of_space_and_inodes(used, inodes, severity):
    assert findings(measured(disks=[disk(used, inodes)]))[0].severity is severity


@pytest.mark.parametrize(("used", "severity"), [(79.9, Severity.FINE), (80.0, Severity.WATCH), (90.0, Severity.ACT)])
def test_memory_is_judged_by_what_is_available(used, severity):
    memory = {"available_bytes": 1, "total_bytes": 2, "used_percent": used}
    found = findings(measured(memory=memory))
    assert [(finding.topic, finding.severity) for finding in found] == [(MEMORY, severity)]


@pytest.mark.parametrize(("per_cpu", "severity"), [(0.9, Severity.FINE), (1.0, Severity.WATCH), (2.0, Severity.ACT)])
def test_load_is_judged_per_cpu(per_cpu, severity):
    load = {"load_1m": 1, "load_5m": 1, "load_15m": 1, "per_cpu_1m": per_cpu}
    assert findings(measured(load=load))[0].severity is severity


def test_a_failed_call_is_no_evidence():
    result = parse_result("host_metrics", "{}", '{"error": {"code": "tool_failed", "message": "x"}}')
    assert (result.ok, result.error_code, result.evidence_count, findings([result])) == (False, "tool_failed", 0, ())


@pytest.mark.parametrize("answer", ["", "no", "[1]", "null", '"x"'])
def test_a_result_that_is_no_object_is_an_error(answer):
    assert parse_result("host_metrics", "{}", answer).error_code == "not_json"


def test_a_runbook_is_advice_and_no_evidence():
    assert Result("search_runbooks", {}, {"hits": [{}]}).evidence_count == 0


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536 * 1024**2, "1.5 GiB"), (5000 * 1024**4, "5000.0 TiB")],
)
def test_sizes_are_written_with_a_unit(size_bytes, text):
    assert size(size_bytes) == text


def searched(folder="/logs", pattern=LOGS.log_pattern, skipped=(), **arguments):
    """A log search that read no file."""
    value = {
        "folder": folder,
        "pattern": pattern,
        "match_count": 0,
        "matches": [],
        "files_searched": 0,
        "lines_searched": 0,
        "skipped": [{"file": str(index), "reason": reason} for index, reason in enumerate(skipped)],
        "skipped_count": len(skipped),
        "limits_reached": [],
    }
    return parse_result("search_logs", json.dumps({"pattern": pattern, **arguments}), json.dumps(value))


@pytest.mark.parametrize(
    ("result", "claim"),
    [
        (searched(), "There is no log file in `/logs`"),
        (searched(name_pattern="nginx*"), "There is no log file in `/logs` named like `nginx*`"),
        (searched(skipped=["Permission denied", "Permission denied", "binary"]), ": permission denied, binary."),
        (
            parse_result("search_logs", "{}", '{"error": {"code": "folder_unreadable", "message": "no folder"}}'),
            "No folder.",
        ),
    ],
)
def test_logs_that_were_not_read_are_no_good_news(result, claim):
    for question in ("any errors?", "is “xyz” in the logs?"):
        text = answer(subject_of(question, ()), [result, result])
        headline, evidence = text.split("\n\n")[0], text.split("Evidence:")[1]
        assert claim in headline
        assert evidence.count(claim) == 1
        for wrong in ("No trouble", "not in the logs", "no log files", "nothing needs doing"):
            assert wrong not in text


@pytest.mark.parametrize(("number", "text"), [(0, "no lines"), (1, "1 line"), (12345, "12,345 lines")])
def test_counts_are_written_with_their_noun(number, text):
    assert count(number, "line") == text


def test_a_quoted_line_is_short_and_printable():
    line = quoted("a`b\x00c\u202e" + "x" * 500)
    assert line.startswith("`a'b c x")
    assert len(line) <= 162
