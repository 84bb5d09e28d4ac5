"""One line of words for each event, and the family that colours its name."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from harness.state import OBSERVED
from ledger.words.codes import counted, noun, plain, used_of
from ledger.words.format import count, duration, size
from ledger.words.places import levels
from ledger.words.text import shorten

Fields = Mapping[str, Any]

ENVELOPE = frozenset({"event_id", "type", "version", "stream_id", "session_id", "run_id", "occurred_us", "elapsed_us"})
"""Fields that every event repeats and that a reader sees elsewhere."""

LINE_CHARS_MAX = 140


def tone(event_type: str, fields: Fields) -> str:
    """What colours the event's name: bad or good news, a warning, else its family, the part before the dot."""
    if is_failure(event_type, fields):
        return "bad"
    if event_type == "run.terminated":
        return "good"
    if event_type == "limit.would_reject" or (event_type == "policy.decided" and fields.get("allowed") is False):
        return "warn"
    return event_type.partition(".")[0]


def is_failure(event_type: str, fields: Fields) -> bool:
    """Whether something went wrong: an attempt, work that was refused, a run that ended in anything but success."""
    if event_type == "run.terminated":
        return fields.get("outcome") != "SUCCESS"
    return event_type in _BAD_NEWS


def line(event_type: str, fields: Fields) -> str:
    """What happened, in a few words; an event of an unknown type lists its fields."""
    make = _LINES.get(event_type)
    try:
        words = make(fields) if make else _listed(fields)
    except (KeyError, TypeError, ValueError, AttributeError):
        words = _listed(fields)
    return shorten(words, LINE_CHARS_MAX)


def boundary_words(boundary: str) -> str:
    """A boundary as people say it: `executor.2 · query_logs`."""
    segments = [unquote(segment) for segment in boundary.split("/")]
    if len(segments) < 4:
        return boundary
    return " · ".join([*(level.label for level in levels(segments[:-4])), segments[-3]])


def _at(fields: Fields, *more: str) -> str:
    return " · ".join([boundary_words(fields["boundary"]), *(each for each in more if each)])


def _started(fields: Fields) -> str:
    attempts = f"attempt {fields['attempt']} of {fields['max_attempts']}" if fields["max_attempts"] > 1 else ""
    return _at(fields, attempts, fields.get("model", ""), fields.get("effect", ""), _timeout(fields))


def _timeout(fields: Fields) -> str:
    return f"at most {duration(fields['timeout_us'])}" if "timeout_us" in fields else ""


def _first_output(fields: Fields) -> str:
    return f"first output after {duration(fields['first_output_us'])}" if "first_output_us" in fields else ""


def _failed(fields: Fields) -> str:
    retry = "will be retried" if fields["will_retry"] else ""
    lasted, first = duration(fields["duration_us"]), _first_output(fields)
    return _at(fields, plain(fields["failure"]), fields.get("error_type", ""), lasted, first, retry)


def _amounts(usage: Mapping[str, int] | None) -> str:
    if usage is None:
        return "unknown"
    if not usage:
        return "nothing charged"
    return ", ".join(_amount(key, number) for key, number in usage.items())


def _amount(key: str, number: int) -> str:
    name = key.removeprefix(OBSERVED)
    return f"{counted(name, number)}{'' if name == key else ' only observed'}"


def _exhausted(fields: Fields) -> str:
    return _at(fields, used_of(fields["resource"], fields["used"], fields["limit"]))


def _rejected(fields: Fields) -> str:
    is_own = fields["resource"] == f"tool:{fields['name']}"
    used = used_of(fields["resource"], fields["used"], fields["limit"], named=not is_own)
    return _at(fields, used, "a limit of its scope" if "scope_id" in fields else "")


def _decided(fields: Fields) -> str:
    verdict = "allowed" if fields["allowed"] else "denied"
    return _at(fields, f"{verdict} by {fields['policy']}", "" if fields["allowed"] else plain(fields["reason"]))


def _scope_opened(fields: Fields) -> str:
    return _at(fields, _amounts(fields["limits"]) if fields["limits"] else "", _timeout(fields))


def _terminated(fields: Fields) -> str:
    over = f" · {noun(fields['resource'])}" if "resource" in fields else ""
    same = fields["reason"] == fields["outcome"]
    return f"{plain(fields['outcome'])}{'' if same else ' · ' + plain(fields['reason'])}{over}"


def _transition(fields: Fields) -> str:
    source = fields.get("from_node")
    cause = "" if fields["cause"] == "NEXT" else f" · {plain(fields['cause'])}"
    return f"{source} → {fields['to_node']}{cause}" if source else f"enters at {fields['to_node']}"


def _listed(fields: Fields) -> str:
    return ", ".join(f"{key}={value}" for key, value in fields.items() if key not in ENVELOPE)


def _erased(fields: Fields) -> str:
    contents = f"{count(fields['content_count'])} contents, {size(fields['size_bytes'])}"
    stage = {"ROWS": "", "LOG": "gone from the log too", "FILE": "gone from the file too"}[fields["stage"]]
    by = f"by {fields['actor']}" if "actor" in fields else ""
    return " · ".join(each for each in (contents, plain(fields["reason"]), by, stage) if each)


_BAD_NEWS = frozenset(
    "attempt.failed attempt.abandoned reservation.rejected retry.refused scope.exhausted hidden_retry.detected".split()
)
_LINES: dict[str, Callable[[Fields], str]] = {
    "run.started": lambda f: f"{f.get('agent', 'agent not named')} · at most {duration(f['timeout_us'])}",
    "flow.selected": lambda f: f["flow"],
    "scope.opened": _scope_opened,
    "policy.decided": _decided,
    "reservation.granted": lambda f: _at(f, _amounts(f["usage"])),
    "reservation.rejected": _rejected,
    "limit.would_reject": _rejected,
    "attempt.started": _started,
    "attempt.succeeded": lambda f: _at(f, duration(f["duration_us"]), _first_output(f)),
    "attempt.failed": _failed,
    "attempt.abandoned": lambda f: _at(f, plain(f["reason"])),
    "attempt.finished_late": lambda f: _at(f, "succeeded" if f["succeeded"] else "failed", duration(f["duration_us"])),
    "usage.settled": lambda f: _at(f, _amounts(f.get("usage")), "" if f["complete"] else "incomplete"),
    "retry.scheduled": lambda f: _at(f, f"attempt {f['next_attempt']} due in {duration(f['delay_us'])}"),
    "retry.refused": lambda f: _at(f, plain(f["reason"])),
    "hidden_retry.detected": lambda f: _at(f, f"request {f['request']} of one attempt"),
    "scope.exhausted": _exhausted,
    "scope.closed": lambda f: _at(f),
    "cancellation.requested": lambda f: f"{plain(f['reason'])}{' · by ' + f['actor'] if 'actor' in f else ''}",
    "cancellation.signalled": lambda f: plain(f["reason"]),
    "graph.transitioned": _transition,
    "graph.finished": lambda f: f"in {f['final_node']} · {plain(f['reason'])}{' · degraded' if f['degraded'] else ''}",
    "answer.recorded": lambda f: size(f["answer_bytes"]),
    "run.terminated": _terminated,
    "evaluation.recorded": lambda f: f"{f['evaluator']} · {plain(f['verdict'])}",
    "feedback.recorded": lambda f: "useful" if f["useful"] else "not useful",
    "case.recorded": lambda f: f"{f['case_id']} · {plain(f['verdict'])}",
    "content.erased": _erased,
}
