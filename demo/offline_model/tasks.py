"""The tasks before the answer: where a question goes, what the plan is, and which tools to call next."""

import json
from collections.abc import Iterator, Sequence

from demo.offline_model.cause_calls import closer_looks, first_looks
from demo.offline_model.wire import WantedCall
from demo.rules.findings import TARGETS_DOWN, Severity, findings
from demo.rules.results import Result, of_tool
from demo.rules.topics import ALERTS, LOG_ACCESS, LOGS, Subject, Topic


def route(subject: Subject) -> str:
    """SIMPLE or COMPLEX, as one JSON object."""
    if not subject.needs_evidence:
        return _json({"intent": "SIMPLE", "reason": "nothing on this machine has to be looked at"})
    about = _about(subject)
    return _json({"intent": "COMPLEX", "reason": f"asks about {about} on this machine"})


def plan(subject: Subject, offered: frozenset[str]) -> str:
    """Goal and steps, as one JSON object."""
    calls = [call for call in first_calls(subject) if not offered or call.name in offered]
    goal = f"Find out about {_about(subject) or 'the question'} from live evidence."
    return _json({"goal": goal, "steps": [call.purpose for call in calls]})


def judge(subject: Subject, results: Sequence[Result]) -> str:
    """RELEVANT or IRRELEVANT, as one JSON object: figures of other things than those asked about are no evidence."""
    sections = {section for topic in subject.topics for section in topic.sections}

    def is_relevant(result: Result) -> bool:
        return result.ok and (result.tool != "host_metrics" or not sections or bool(sections & result.value.keys()))

    about = sorted({result.tool for result in results if is_relevant(result)})
    if not about:
        return _json({"verdict": "IRRELEVANT", "reason": "no result is about what was asked"})
    return _json({"verdict": "RELEVANT", "reason": f"{listed(about)} looked at what was asked about"})


def next_calls(subject: Subject, results: Sequence[Result], *, repair: bool) -> Iterator[WantedCall]:
    """What to call now, in the light of what was already called; nothing more once the evidence is there."""
    if repair:
        yield from _wider(subject)
    elif not results:
        yield from first_calls(subject)
    else:
        yield from _as_plain_text(results)
        if any(of_tool(results, "prometheus_alerts")):
            arguments = {"query": TARGETS_DOWN, "limit": 10}
            yield WantedCall("query_prometheus", arguments, "ask Prometheus which targets are down")
        if subject.wants_cause:
            yield _alerts()
            yield from closer_looks(subject.question, results)
            return
        yield from _runbooks_for(subject, results)


def first_calls(subject: Subject) -> Iterator[WantedCall]:
    """Figures, processes and logs for each topic, all at once; runbooks where the topic is already clear."""
    if subject.wants_cause:
        yield from first_looks()
        for text in subject.quoted:
            yield _text_search(text)
        return
    topics = subject.topics or (LOGS,)
    if not subject.logs_only:
        if sections := list(dict.fromkeys(section for topic in topics for section in topic.sections)):
            yield _metrics(sections)
        for topic in topics:
            if by := topic.processes_by:
                yield WantedCall("top_processes", {"sort_by": by, "limit": 5}, f"list the processes with the most {by}")
    if subject.whole_machine or ALERTS in topics:
        yield _alerts()
    for text in subject.quoted:
        yield _text_search(text)
    if not subject.quoted:
        yield from (_log_search(topic) for topic in topics if topic.log_pattern)
    if not subject.whole_machine:
        yield from map(_runbook_search, topics)


def _wider(subject: Subject) -> Iterator[WantedCall]:
    """After evidence was missing: the whole machine, and every kind of error."""
    yield _metrics(["cpu", "memory", "swap", "disks", "load"])
    yield _log_search(LOGS)
    words = subject.question[:300]
    yield WantedCall("search_runbooks", {"query": words, "limit": 2}, "find a runbook by the words of the question")


def _as_plain_text(results: Sequence[Result]) -> Iterator[WantedCall]:
    """A pattern that was no regular expression is searched for as it is."""
    for result in results:
        if result.tool == "search_logs" and result.error_code == "invalid_pattern":
            yield WantedCall("search_logs", {**result.arguments, "regex": False}, "search for it as plain text")


def _runbooks_for(subject: Subject, results: Sequence[Result]) -> Iterator[WantedCall]:
    """A runbook for each trouble found; for a healthy machine the one for its first topic, to say what to watch."""
    asked = {result.arguments.get("query") for result in of_tool(results, "search_runbooks")}
    troubled = [finding.topic for finding in findings(results) if finding.severity > Severity.FINE]
    wanted = troubled or ([] if asked else list(subject.topics[:1]))
    for topic in dict.fromkeys(wanted):
        if topic is not LOG_ACCESS and topic.runbook_query not in asked:
            yield _runbook_search(topic)


def _about(subject: Subject) -> str:
    """What a question is about, in words."""
    cause = ["the cause of a trouble"] if subject.wants_cause else []
    return listed([*cause, *(topic.label for topic in subject.topics), *(f"“{text}”" for text in subject.quoted)])


def _alerts() -> WantedCall:
    return WantedCall("prometheus_alerts", {"limit": 10}, "ask Prometheus which alerts are active")


def _text_search(text: str) -> WantedCall:
    return WantedCall("search_logs", {"pattern": text, "regex": False}, f"search the logs for “{text}”")


def _metrics(sections: list[str]) -> WantedCall:
    return WantedCall("host_metrics", {"sections": sections}, f"measure {listed(sections)}")


def _log_search(topic: Topic) -> WantedCall:
    about = "errors" if topic is LOGS else f"trouble with {topic.label}"
    arguments = {"pattern": topic.log_pattern, "regex": True, "limit": 5}
    return WantedCall("search_logs", arguments, f"search the logs for {about}")


def _runbook_search(topic: Topic) -> WantedCall:
    arguments = {"query": topic.runbook_query, "limit": 1}
    return WantedCall("search_runbooks", arguments, f"find the runbook about {topic.label}")


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
