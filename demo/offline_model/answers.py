"""The answers: from the evidence alone, with its sources, and with what to do next at the end."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from demo.offline_model import cause_answer
from demo.offline_model.tasks import listed
from demo.offline_model.wire import MODEL_NAME
from demo.rules.diagnosis import diagnose
from demo.rules.findings import FOLDER_UNREADABLE, MARKS, Finding, Severity, count, findings
from demo.rules.results import Result, of_tool
from demo.rules.topics import LOG_ACCESS, Subject, Topic

SIGNATURE = f"— {MODEL_NAME}, a rule-based model: it compares what the tools returned with fixed limits, no more."
UNREAD = "Next: give the app the right to read these logs, or start it with another folder (--logs)."
STEPS_PER_RUNBOOK = 3
DETAILS_IN_VERDICT = 3

GLOSSARY = {
    "load average": "Load average is the mean number of processes that run or wait for a disk; divide it by the number "
    "of CPUs: above 1 per CPU work is waiting.",
    "swap": "Swap is disk space that takes pages of memory that are not in use; a little is normal, and steady reading "
    "and writing of it makes a machine slow.",
    "inode": "An inode is the record of one file. A file system can run out of inodes while it still has space.",
    "oom": "The OOM killer is the kernel's last resort when memory runs out: it ends the process that frees the most.",
    "available memory": "Available memory is what programs can still get: free memory and caches that can be dropped.",
    "iowait": "I/O wait is the time in which a CPU was idle while something waited for a disk.",
    "runbook": "A runbook is a page that says for one kind of trouble what to check and what to do.",
}


def chat(question: str) -> str:
    """An answer that needs no look at the machine: a definition from the glossary, or what can be asked."""
    meaning = next((text for word, text in GLOSSARY.items() if word in question.lower()), None)
    if meaning is None:
        meaning = (
            "I can look at this machine: CPU, load, memory, swap, disks, processes, its log files and the runbooks."
        )
    example = "Ask, for example: “Is any disk close to full?” or “What do the logs say about errors?”"
    return f"{meaning}\n\n{example}\n\n{SIGNATURE}"


def answer(subject: Subject, results: Sequence[Result]) -> str:
    """The verdict first, then the evidence with its sources, then what to do."""
    found = findings(results)
    topics = {finding.topic for finding in found if finding.severity > Severity.FINE}
    if subject.wants_cause:
        diagnosis = diagnose(results)
        verdict = cause_answer.verdict(diagnosis)
        why = [*cause_answer.evidence(diagnosis), *cause_answer.earlier_cases(results)]
        queries = set() if diagnosis.cause is None else {diagnosis.cause.runbook_query}
    else:
        verdict, why, queries = _verdict(subject, found), [], {topic.runbook_query for topic in topics}
    unread = topics == {LOG_ACCESS}
    parts = [verdict, _evidence(found, results, why), UNREAD if unread else _next_steps(queries, results), SIGNATURE]
    return "\n\n".join(part for part in parts if part)


def _verdict(subject: Subject, found: Sequence[Finding]) -> str:
    follows = f"Following up on {_labels(subject.carried_over)}. " if subject.carried_over else ""
    told = [finding for finding in found if finding.quoted] or found
    if not told:
        return f"{follows}There is no evidence to answer from. No tool returned a figure or searched a log."
    worst = max(finding.severity for finding in told)
    # One statement for each topic concerned; figures come before logs.
    first: dict[Topic, str] = {}
    for finding in told:
        if finding.severity is worst:
            first.setdefault(finding.topic, finding.text)
    details = "; ".join(list(first.values())[:DETAILS_IN_VERDICT])
    about_quoted = any(finding.quoted for finding in told)
    return f"{follows}{_head(worst, list(first), about_quoted=about_quoted)} {_sentence(details)}"


def _head(worst: Severity, topics: Sequence[Topic], *, about_quoted: bool) -> str:
    about = _labels(topics)
    if about_quoted:
        return "Found it in the logs." if worst else "It is not in the logs."
    if worst is Severity.ACT:
        return f"Act on {about} today."
    if worst is Severity.WATCH:
        return f"Nothing is urgent; have a look at {about}."
    return f"No trouble with {about}."


def _evidence(found: Sequence[Finding], results: Sequence[Result], why: Sequence[str]) -> str:
    lines = [*why, *(_told(finding) for finding in found)]
    lines.extend(_left_out(results))
    return "Evidence:\n\n" + "\n".join(lines) if lines else ""


def _told(finding: Finding) -> str:
    return f"- {_sentence(finding.text)}{MARKS[finding.severity]} [{finding.source}]"


def _left_out(results: Sequence[Result]) -> Iterator[str]:
    """What was not looked at, so that nobody takes silence for health."""
    for result in of_tool(results, "search_logs"):
        reasons = sorted({skipped["reason"] for skipped in result.value["skipped"]})
        if reasons:
            yield f"- {count(result.value['skipped_count'], 'file')} not searched: {', '.join(reasons)}. [search_logs]"
        if limits := result.value["limits_reached"]:
            yield f"- The search stopped at its limits: {', '.join(limits)}. [search_logs]"
        break
    for result in results:
        if not result.ok and result.error_code != FOLDER_UNREADABLE:
            yield f"- {result.tool} gave no result: {result.error_code}."


def _next_steps(troubled: AbstractSet[str], results: Sequence[Result]) -> str:
    """What the runbooks say about what is troubled, which is told by the queries that find them."""
    runbooks = {
        hit["runbook"]: hit
        for result in of_tool(results, "search_runbooks")
        for hit in result.value["hits"][:1]
        if not troubled or result.arguments.get("query") in troubled
    }
    if not runbooks:
        return "Next: ask about one resource, for example the disks or the memory, to see what its runbook says."
    cited = ", ".join(f"“{hit['title']}” (runbooks/{name}.md)" for name, hit in runbooks.items())
    if not troubled:
        return f"Next: nothing needs doing now. What to watch for, and the limits: {cited}."
    steps = [step for hit in runbooks.values() for step in hit["steps"][:STEPS_PER_RUNBOOK]]
    numbered = "\n".join(f"{number}. {step}" for number, step in enumerate(steps, start=1))
    return f"Next, from {cited}:\n\n{numbered}"


def _labels(topics: Sequence[Topic]) -> str:
    return listed([topic.label for topic in topics])


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}{'' if text.endswith(('`', '.')) else '.'}"
