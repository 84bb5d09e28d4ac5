"""What an event may hold, so that its bytes are the same for every writer and reader (SPEC D9, D21)."""

import ast
import json
import subprocess
import sys
import typing
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from harness import events as e
from harness.errors import UnknownEvent
from harness.events.base import MAX_SAFE_INTEGER

ROOT = Path(__file__).parents[2]
ENVELOPE: dict[str, Any] = {
    "event_id": "w1:1",
    "stream_id": "r:run-1",
    "session_id": "s",
    "run_id": "run-1",
    "occurred_us": 1_800_000_000_000_000,
    "elapsed_us": 7,
    "boundary": "tool/grep/1/1",
}
SAMPLES: dict[str, dict[str, Any]] = {
    "run.started": {"limits": {"model_calls": 1}, "timeout_us": 1, "labels": {"team": "ops"}, "query_stored": True},
    "flow.selected": {"flow": "CHAT_GRAPH"},
    "scope.opened": {"scope_id": "s1", "limits": {"model_calls": 1}, "timeout_us": 5},
    "policy.decided": {"kind": "tool", "name": "grep", "policy": "rules", "allowed": True, "reason": "ALLOWED"},
    "reservation.granted": {"kind": "tool", "name": "grep", "usage": {"tool_calls": 1}, "attempt_id": "a1"},
    "reservation.rejected": {
        "kind": "tool",
        "name": "grep",
        "resource": "tool:grep",
        "amount": 1,
        "used": 5,
        "limit": 5,
    },
    "limit.would_reject": {
        "kind": "tool",
        "name": "grep",
        "resource": "tool:grep",
        "amount": 1,
        "used": 5,
        "limit": 5,
        "attempt_id": "a1",
    },
    "attempt.started": {
        "attempt_id": "a1",
        "kind": "tool",
        "name": "grep",
        "operation": "TOOL_CALL",
        "attempt": 1,
        "max_attempts": 1,
        "input_digest": "0" * 64,
    },
    "attempt.succeeded": {"attempt_id": "a1", "duration_us": 1, "output_bytes": 3},
    "attempt.failed": {"attempt_id": "a1", "duration_us": 1, "failure": "TRANSPORT", "will_retry": False},
    "attempt.abandoned": {"attempt_id": "a1", "reason": "RUN_ENDED"},
    "attempt.finished_late": {"attempt_id": "a1", "duration_us": 1, "succeeded": True},
    "usage.settled": {"attempt_id": "a1", "usage": {"input_tokens": 1}, "complete": False},
    "retry.scheduled": {"attempt_id": "a1", "failure": "TRANSPORT", "next_attempt": 2, "delay_us": 100},
    "retry.refused": {"attempt_id": "a1", "failure": "TRANSPORT", "reason": "DEADLINE_EXCEEDED"},
    "hidden_retry.detected": {"attempt_id": "a1", "request": 2, "usage": {"model_calls": 1}},
    "scope.exhausted": {"scope_id": "s1", "resource": "model_calls", "used": 1, "limit": 1},
    "scope.closed": {"scope_id": "s1"},
    "cancellation.requested": {"reason": "USER_REQUESTED", "actor": "u-1"},
    "cancellation.signalled": {"reason": "USER_REQUESTED"},
    "graph.transitioned": {"from_node": "planner", "to_node": "executor", "cause": "NEXT"},
    "graph.finished": {"final_node": "composer", "reason": "COMPOSED", "degraded": False},
    "answer.recorded": {"answer_digest": "0" * 64, "answer_bytes": 2, "answer_stored": True},
    "run.terminated": {"outcome": "SUCCESS", "reason": "COMPLETED"},
    "evaluation.recorded": {"evaluator": "rules", "verdict": "PASS", "usage": {"found": 3}},
    "feedback.recorded": {"useful": True, "actor": "u-1"},
    "case.recorded": {"case_id": "case-1", "verdict": "ACCEPTED"},
    "content.erased": {
        "erasure_id": "erasure-1",
        "scope": "DIGEST",
        "stage": "ROWS",
        "content_count": 1,
        "size_bytes": 7,
        "reason": "USER_REQUEST",
        "digest": "0" * 64,
    },
    "session.opened": {"stream_id": "s:s"},
    "session.context_cleared": {"stream_id": "s:s", "actor": "u-1"},
    "key.created": {"stream_id": "sys", "key_id": "k1", "purpose": "CHECKPOINT", "algorithm": "ED25519"},
    "key.rotated": {
        "stream_id": "sys",
        "key_id": "k2",
        "replaced_key_id": "k1",
        "purpose": "CHECKPOINT",
        "algorithm": "ED25519",
    },
    "key.revoked": {"stream_id": "sys", "key_id": "k1", "reason": "COMPROMISED"},
    "token.created": {"stream_id": "sys", "token_id": "t1", "grants": "READ", "expires_us": 1},
    "token.revoked": {"stream_id": "sys", "token_id": "t1", "reason": "LOST"},
    "access.recorded": {"stream_id": "sys", "action": "TRACE_READ", "allowed": True, "of_run_id": "run-1"},
    "erasure.requested": {
        "stream_id": "sys",
        "request_id": "request-1",
        "scope": "RUN",
        "reason": "USER_REQUEST",
        "actor": "dpo-1",
        "expires_us": 9,
    },
    "erasure.decided": {"stream_id": "sys", "erasure_id": "erasure-1", "scope": "RUN", "reason": "USER_REQUEST"},
    "retention.decided": {"stream_id": "sys", "erasure_id": "erasure-1", "before_us": 5, "reason": "RETENTION"},
    "erasure.finished": {
        "stream_id": "sys",
        "erasure_id": "erasure-1",
        "stage": "FILE",
        "run_count": 1,
        "content_count": 2,
        "size_bytes": 3,
    },
    "ledger.restored": {"stream_id": "sys", "restore_id": "restore-1", "backup_id": "backup-1", "event_count": 9},
}


def fields_of(event_type: str) -> dict[str, Any]:
    """A valid body of this type."""
    known = e.EVENT_TYPES[event_type].model_fields
    return {"type": event_type, "version": 1} | {
        name: value for name, value in (ENVELOPE | SAMPLES[event_type]).items() if name in known
    }


def test_every_type_of_the_vocabulary_has_a_sample():
    assert SAMPLES.keys() == e.EVENT_TYPES.keys()


@pytest.mark.parametrize("event_type", SAMPLES)
def test_a_body_reads_back_as_the_event_it_was_written_from(event_type: str):  # D9
    event = e.parse_event(fields_of(event_type))
    assert type(event) is e.EVENT_TYPES[event_type]
    body = json.dumps(event.model_dump(exclude_none=True), sort_keys=True)
    assert e.parse_event(json.loads(body)) == event


@pytest.mark.parametrize("event_type", SAMPLES)
def test_an_event_is_frozen_and_takes_no_unknown_field(event_type: str):  # D9
    event: Any = e.parse_event(fields_of(event_type))
    with pytest.raises(ValidationError):
        event.occurred_us = 0
    with pytest.raises(ValidationError):
        e.parse_event(fields_of(event_type) | {"note": "x"})


@pytest.mark.parametrize("event_type", SAMPLES)
def test_ids_and_times_are_passed_in_and_never_minted(event_type: str):  # D9
    fields = fields_of(event_type)
    for name in ("event_id", "stream_id", "occurred_us"):
        with pytest.raises(ValidationError, match=name):
            e.parse_event({key: value for key, value in fields.items() if key != name})


def written_as(event_type: str) -> list[tuple[str, Any]]:
    """Each field of the sample with a value of the same meaning but of a type that D9 does not allow."""
    swaps: list[tuple[str, Any]] = []
    for name, value in fields_of(event_type).items():
        wrong: list[Any]
        if isinstance(value, bool):
            wrong = [1, "true", None]
        elif isinstance(value, int):
            wrong = [float(value), str(value), True, MAX_SAFE_INTEGER + 1, -MAX_SAFE_INTEGER - 1]
        elif isinstance(value, str):
            wrong = ["", "naïve", "a\nb", "\udc00", "x" * 2000, 7, value.encode(), [value]]
        else:
            key = next(iter(value))
            wrong = [{key: {}}, {key: 1.5}, {key: None}, {"": value[key]}, {"é": value[key]}, [key], "none"]
            wrong.append({f"k{number}": value[key] for number in range(65)})
        swaps += [(name, bad) for bad in wrong if bad is not None]
    return swaps


@pytest.mark.parametrize("event_type", SAMPLES)
def test_no_field_takes_a_value_that_has_no_one_form_in_bytes(event_type: str):  # D9: no floats, no free text
    taken = []
    for name, bad in written_as(event_type):
        try:
            read = getattr(e.parse_event(fields_of(event_type) | {name: bad}), name)
        except (ValueError, UnknownEvent, TypeError):
            continue
        if repr(read) != repr(fields_of(event_type)[name]):
            taken.append((name, bad))
    assert taken == []


@pytest.mark.parametrize("event_type", SAMPLES)
def test_an_event_belongs_to_the_stream_of_its_run_or_session_or_of_the_ledger(event_type: str):  # D2, E4
    for stream_id in {"r:other", "s:other", "sys"} - {fields_of(event_type)["stream_id"]}:
        with pytest.raises(ValidationError, match="stream"):
            e.parse_event(fields_of(event_type) | {"stream_id": stream_id})


@pytest.mark.parametrize("bad", ["w1", "w1:", ":1", "w 1:1", "w1:1:1", "w1:x", "w1:12345678901234567"])
def test_an_event_id_is_its_writer_and_a_number(bad: str):  # D21
    with pytest.raises(ValidationError, match="event_id"):
        e.parse_event(fields_of("run.terminated") | {"event_id": bad})


def test_only_these_maps_are_in_events():  # D9
    maps = {
        (event_type, name)
        for event_type, model in e.EVENT_TYPES.items()
        for name, field in model.model_fields.items()
        if "Mapping" in str(field.annotation)
    }
    assert {name for _, name in maps} == {"limits", "usage", "labels"}


def test_an_unknown_type_is_told_from_a_malformed_body():
    for event_type, version in (("run.paused", 1), ("run.terminated", 2)):
        with pytest.raises(UnknownEvent, match="is not known here"):
            e.parse_event({"type": event_type, "version": version})
    for body in ({}, {"type": "run.terminated"}, {"type": 7, "version": 1}, {"type": "run.terminated", "version": "1"}):
        with pytest.raises(ValueError, match="a type and a version"):
            e.parse_event(dict(body))
    with pytest.raises(ValueError, match="validation error"):
        e.parse_event({"type": "run.terminated", "version": 1})


def test_every_field_is_a_boolean_an_integer_or_a_bounded_string():  # D9
    plain = {bool, int, str}
    for event_type, model in e.EVENT_TYPES.items():
        for name, field in model.model_fields.items():
            found = {kind for kind in _leaves(field.annotation) if kind is not type(None)}
            assert found <= plain, (event_type, name, found)


def _leaves(annotation: Any) -> set[Any]:
    if typing.get_origin(annotation) is typing.Literal:
        return {type(value) for value in typing.get_args(annotation)}
    inner = typing.get_args(annotation)
    inner = inner[:1] if typing.get_origin(annotation) is typing.Annotated else inner
    return set().union(*map(_leaves, inner)) if inner else {annotation}


def test_the_modules_of_the_vocabulary_mint_nothing():  # D9
    folder = Path(e.__file__).parent
    defaults = [
        f"{path.name}:{node.lineno}"
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.keyword) and node.arg == "default_factory"
    ]
    assert defaults == []


BUILT = """
from harness import Harness, MemoryJournal
from harness.events import EVENT_TYPES

print({model.__pydantic_complete__ for model in EVENT_TYPES.values()})
Harness(MemoryJournal())
print({model.__pydantic_complete__ for model in EVENT_TYPES.values()})
"""


def test_models_are_built_when_a_harness_is_made_and_neither_by_importing_nor_in_a_run():
    done = subprocess.run([sys.executable, "-c", BUILT], cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr) == ("{False}\n{True}\n", "")
