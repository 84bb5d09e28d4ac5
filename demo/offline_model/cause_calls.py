"""Which tools to call for a question about a cause: everything once, then what the first answers point at."""

from collections.abc import Iterator, Sequence

from demo.offline_model.wire import WantedCall
from demo.rules.causes import CAUSE_PATTERNS, LEVELS, READINGS
from demo.rules.diagnosis import diagnose, fresh_deploys, grows_unseen
from demo.rules.log_lines import lines_in
from demo.rules.results import Result, of_tool

LINES_PER_SEARCH = 40
PROCESSES = 6
QUESTION_CHARS = 2_000


def first_looks() -> Iterator[WantedCall]:
    """All figures, the largest and the busiest processes, the signs of every cause: as much as one reply may ask."""
    sections = ["cpu", "memory", "swap", "disks", "load"]
    yield WantedCall("host_metrics", {"sections": sections}, "measure everything")
    for by in ("memory", "cpu"):
        yield WantedCall("top_processes", {"sort_by": by, "limit": PROCESSES}, f"list the processes with the most {by}")
    for pattern, purpose in CAUSE_PATTERNS.items():
        yield _search(pattern, purpose)


def closer_looks(question: str, results: Sequence[Result]) -> Iterator[WantedCall]:
    """A process that may grow, and a service with a new version; then what to do about the cause that is found."""
    seen = {str(result.arguments.get("name_pattern", "*")) for result in of_tool(results, "search_logs")}
    wanted = []
    if (name := grows_unseen(results)) is not None:
        wanted.append(_search(READINGS, f"follow the memory of {name}", name))
    for _, service, _ in list(fresh_deploys(lines_in(results)))[-1:]:
        wanted.append(_search(LEVELS, f"search for errors of {service}, which has a new version", service))
    fresh = [call for call in wanted if call.arguments["name_pattern"] not in seen]
    if fresh:
        yield from fresh
        return
    yield WantedCall(
        "similar_cases", {"question": question[:QUESTION_CHARS], "limit": 1}, "find an earlier case like it"
    )
    cause = diagnose(results).cause
    if cause is not None:
        query = {"query": cause.runbook_query, "limit": 1}
        yield WantedCall("search_runbooks", query, f"find the runbook about {cause.label}")


def _search(pattern: str, purpose: str, name: str | None = None) -> WantedCall:
    arguments = {"pattern": pattern, "regex": True, "limit": LINES_PER_SEARCH}
    if name is not None:
        arguments["name_pattern"] = f"*{name}*"
    return WantedCall("search_logs", arguments, purpose)
