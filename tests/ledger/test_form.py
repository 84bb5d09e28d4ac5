"""Whatever bytes a body has beside the one form of its event are found, even where they were hashed and linked (D9)."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from harness import events as e
from harness.errors import UnknownEvent
from ledger.bytes import body_of
from ledger.stored_events import events_of
from ledger.verifying.form import check_form, form_of
from tests.ledger.test_bytes import EVENTS

BODIES = [event["body"].encode() for event in EVENTS]
GRANTED = next(body for body in BODIES if b'"type":"reservation.granted"' in body)
ODD = st.sampled_from([*'{}":,\\ -.0aZé', "\\u0041", "null", "true", "1e3", '"a":1,', "\n", "x" * 300])


def is_of_one_form(body: bytes) -> bool:
    """What the models and the encoder say, the slow way."""
    try:
        return body_of(e.parse_event(orjson.loads(body))) == body
    except ValidationError as error:
        # That the stream is that of the run or session is seen by the columns.
        assume({each["type"] for each in error.errors()} != {"value_error"})
        return False
    except (ValueError, UnknownEvent, AttributeError):
        return False


def is_taken(body: bytes) -> bool:
    try:
        (event,) = events_of([body])
        check_form(event, body)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("body", BODIES, ids=lambda body: json.loads(body)["type"])
def test_an_event_of_ours_has_its_form_at_first_sight(body: bytes):
    (event,) = events_of([body])
    check_form(event, body)
    assert b"\\" in body or form_of(event.type).is_that_of(event, body)


@given(st.sampled_from(BODIES), st.data())
def test_bytes_are_taken_where_they_are_the_canonical_ones_of_an_event(body: bytes, data: Any):
    start = data.draw(st.integers(0, len(body)))
    end = data.draw(st.integers(start, min(start + 12, len(body))))
    changed = body[:start] + data.draw(ODD | st.just("")).encode() + body[end:]
    assert is_taken(changed) == is_of_one_form(changed)


@pytest.mark.parametrize(
    "changed",
    [
        GRANTED.replace(b'"kind":"tool"', b'"kind":"tool","kind":"tool"'),
        GRANTED.replace(b'{"', b'{ "', 1),
        GRANTED.replace(b'"usage":{', b'"usage":{"zz":1,'),
        GRANTED.replace(b'"kind":"tool"', b'"kind":"2l"'),
        GRANTED.replace(b'"kind":"tool"', b'"kind":"\\u0074ool"'),
    ],
    ids=["a key twice", "a space", "keys of a map out of order", "a code that is none", "an escape"],
)
def test_bytes_that_could_be_written_otherwise_are_refused(changed: bytes):
    assert changed != GRANTED
    assert not is_taken(changed)


def test_a_name_may_have_what_json_escapes():
    body = GRANTED.replace(b'"name":"', b'"name":"\\"\\\\')
    assert is_of_one_form(body)
    assert is_taken(body)
