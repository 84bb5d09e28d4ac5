"""One line of words for each event, and the family that colours its name."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from viewer.present.format import count, duration, size
from viewer.present.text import shorten
from viewer.present.words import plain, resource

Fields = Mapping[str, Any]

ENVELOPE = frozenset({"event_id", "type", "version", "stream_id", "session_id", "run_id", "occurred_us", "elapsed_us"})
"""Fields that every event repeats and that a reader sees elsewhere."""

LINE_CHARS_MAX = 140


def tone(event_type: str, fields: Fields) -> str:
    """What colours the event's name: bad or good news, else its family, the part before the dot."""
    if event_type == "run.terminated":
        return "good" if fields.get("outcome") == "SUCCESS" else "bad"
    return "bad" if event_type in _BAD_NEWS else event_type.partition(".")[0]


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
    return " · ".join([*segments[:-4], segments[-3]])


def _at(fields: Fields, *more: str) -> str:
    return " · ".join([boundary_words(fields["boundary"]), *(each for each in more if each)])


def _started(fields: Fields) -> str:
    attempts = f"attempt {fields['attempt']} of {fields['max_attempts']}" if fields["max_attempts"] > 1 else ""
    return _at(fields, attempts, fields.get("model", ""), fields.get("effect", ""))


def _failed(fields: Fields) -> str:
    retry = "will be retried" if fields["will_retry"] else ""
    return _at(fields, plain(fields["failure"]), fields.get("error_type", ""), duration(fields["duration_us"]), retry)


def _amounts(usage: Mapping[str, int] | None) -> str:
    if usage is None:
        return "unknown"
    if not usage:
        return "nothing charged"
    return ", ".join(
        f"{amount:,} {key[5:] if key.startswith('tool:') else _noun(key, amount)}" for key, amount in usage.items()
    )


def _noun(key: str, amount: int) -> str:
    noun = resource(key).lower()
    return noun.removesuffix("s") if amount == 1 else noun


def _exhausted(fields: Fields) -> str:
    text = size if fields["resource"] == "run_bytes" else count
    used = f"{text(fields['used'])} of {text(fields['limit'])} used"
    return _at(fields, f"{resource(fields['resource']).lower()}: {used}")


def _rejected(fields: Fields) -> str:
    text = size if fields["resource"] == "run_bytes" else count
    used = f"{text(fields['used'])} of {text(fields['limit'])} used"
    own = fields["resource"] == f"tool:{fields['name']}"
    return _at(fields, used if own else f"{resource(fields['resource']).lower()}: {used}")


def _decided(fields: Fields) -> str:
    verdict = "allowed" if fields["allowed"] else "denied"
    return _at(fields, f"{verdict} by {fields['policy']}", "" if fields["allowed"] else plain(fields["reason"]))


def _scope_opened(fields: Fields) -> str:
    timeout = f"at most {duration(fields['timeout_us'])}" if "timeout_us" in fields else ""
    return _at(fields, _amounts(fields["limits"]) if fields["limits"] else "", timeout)


def _terminated(fields: Fields) -> str:
    over = f" · {resource(fields['resource']).lower()}" if "resource" in fields else ""
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
    "attempt.succeeded": lambda f: _at(f, duration(f["duration_us"])),
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
