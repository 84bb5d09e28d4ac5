"""Rules that say whether an answer is good: a report complete, and each answer true to its evidence (SPEC R7)."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

from demo.rules.citations import citations
from demo.rules.findings import Severity, findings
from demo.rules.results import Result, measured, of_tool

RULE_EVALUATION = "aiops_rule_evaluation"
"""Its name in the record, and under `self_evaluation`."""
CHAT_EVALUATION = "chat_self_evaluation"
"""The same for a chat that looked at the machine."""
RULES_VERSION = 1


class RuleVerdict(TypedDict):
    """Whether the report keeps one rule."""

    rule: str
    passed: bool


class RuleEvaluation(TypedDict):
    """All rules together; it passes if each does."""

    version: int
    verdict: str
    passed_count: int
    rule_count: int
    rules: list[RuleVerdict]


def evaluate_report(report: str, results: Sequence[Result]) -> RuleEvaluation:
    """Check a report against the results it was written from."""
    sections = measured(results)
    disks = sections.get("disks", [])
    act = any(finding.severity is Severity.ACT for finding in findings(results))
    hits = [hit for result in of_tool(results, "search_runbooks") for hit in result.value["hits"]]
    checks = {
        "every_resource_measured": {"cpu", "memory", "disks", "load"} <= sections.keys(),
        "logs_searched": any(of_tool(results, "search_logs")),
        "fullest_disk_stated": not disks or f"{disks[0]['used_percent']}%" in report,
        "runbook_cited": any(hit["title"] in report or hit["runbook"] in report for hit in hits),
        "urgent_trouble_not_played_down": not act or "no trouble" not in report.lower(),
    }
    return _evaluation(checks)


def evaluate_chat(answer: str, results: Sequence[Result], *, degraded: bool) -> RuleEvaluation:
    """Check an answer against what the tools returned: was there evidence, is it cited, did the tools work?"""
    return _evaluation(
        {
            "evidence_found": any(result.evidence_count for result in results),
            "evidence_cited": citations(answer, [result.value for result in results if result.ok]).are_sound,
            "tools_worked": all(result.ok for result in results),
            "not_degraded": not degraded,
        }
    )


def _evaluation(checks: Mapping[str, bool]) -> RuleEvaluation:
    passed_count = sum(checks.values())
    return RuleEvaluation(
        version=RULES_VERSION,
        verdict="PASS" if passed_count == len(checks) else "FAIL",
        passed_count=passed_count,
        rule_count=len(checks),
        rules=[RuleVerdict(rule=rule, passed=passed) for rule, passed in checks.items()],
    )
