"""A stored body is read without being checked in full once more, and what is no event is still found (SPEC D9, E9)."""

import json
from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from harness import events as e
from harness.errors import UnknownEvent
from harness.events.base import MAX_SAFE_INTEGER
from ledger.stored_events import events_of
from tests.harness.test_event_values import SAMPLES, fields_of
from tests.ledger.test_bytes import EVENTS

OF_TEXTS = {"string_pattern_mismatch", "value_error"}
"""What is found in full only: characters that a text may not have, and a stream that is not the run's."""


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: json.loads(event["body"])["type"])
def test_what_is_read_of_a_body_is_what_its_event_says(event):
    body = event["body"].encode()
    (read,), full = events_of([body]), e.parse_event(orjson.loads(body))
    assert not isinstance(read, e.Event), "it was not checked in full"
    said = {name: getattr(read, name) for name in type(full).model_fields}
    assert repr(said) == repr({name: getattr(full, name) for name in type(full).model_fields})


def changed(event_type: str) -> list[dict[str, Any]]:
    """Bodies that differ from a valid one in one field: gone, of another kind, out of range, null, or unknown."""
    valid = fields_of(event_type)
    bodies: list[dict[str, Any]] = [valid | {"note": 1}]
    for name, value in valid.items():
        bodies.append({key: value for key, value in valid.items() if key != name})
        wrong: list[Any] = [None, 1.5, "1", 1, True, -1, MAX_SAFE_INTEGER + 1, -MAX_SAFE_INTEGER - 1, 2**63, [], {}]
        if isinstance(value, dict):
            key = next(iter(value))
            wrong += [{key: each} for each in wrong] + [{f"k{number}": value[key] for number in range(65)}]
        bodies += [valid | {name: each} for each in wrong]
    return bodies


def is_of_texts_only(error: Exception) -> bool:
    return isinstance(error, ValidationError) and {each["type"] for each in error.errors()} <= OF_TEXTS


@pytest.mark.parametrize("event_type", SAMPLES)
def test_a_body_is_an_event_where_it_is_one_when_it_is_checked_in_full(event_type: str):
    for fields in changed(event_type):
        body = json.dumps(fields).encode()
        try:
            full = [e.parse_event(orjson.loads(body)).type]
        except UnknownEvent:
            full = []
        except ValueError as error:
            if not is_of_texts_only(error):
                with pytest.raises(ValueError, match=r"\S"):
                    events_of([body])
            continue
        assert [event.type for event in events_of([body])] == full


DEEP = 200_000


@pytest.mark.parametrize("body", [b"", b"[]", b"7", b"{", b'{"type":"run.terminated"', b"\xff", b'{"type":"\xff"}'])
def test_bytes_that_are_no_event_are_refused(body: bytes):
    with pytest.raises(ValueError, match=r"\S"):
        events_of([body])


def test_a_type_or_a_version_from_elsewhere_is_passed_over():
    ended = EVENTS[0]["body"].encode()
    news = [b'{"type":"run.paused","version":1,"why":1.5}', b'{"type":"run.terminated","version":2}']
    assert [event.type for event in events_of([news[0], ended, news[1]])] == [json.loads(ended)["type"]]


@pytest.mark.parametrize("name", ["type", "version", "limits", "unknown"])
@pytest.mark.parametrize("nested", ["[" * DEEP, "[" * DEEP + "]" * DEEP, '{"a":' * DEEP + "1" + "}" * DEEP])
def test_a_body_nested_too_deeply_is_refused_as_any_other(name: str, nested: str):  # CASES 27
    others = {key: value for key, value in fields_of("run.started").items() if key != name}
    body = f'{{"{name}": {nested}, {json.dumps(others)[1:]}'.encode()
    with pytest.raises(ValueError, match=r"\S"):
        events_of([body])
