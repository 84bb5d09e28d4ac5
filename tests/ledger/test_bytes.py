"""The bytes of a ledger never change: golden vectors, recomputed by our code and by the standard library alone."""

import hashlib
import json
from collections import OrderedDict, UserDict
from pathlib import Path
from types import MappingProxyType

import orjson
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from harness import events as e
from harness.content import Content, content_digest
from harness.ids import check_id
from ledger.bytes import body_hash, body_of, canonical, case_id_of, genesis_link, next_link
from ledger.errors import TooLarge
from ledger.sizes import MAX_BODY_BYTES
from tests.ledger.scripted import ScriptedRun

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "v1.json").read_text())
# What came to the vocabulary later stands apart, so that the signed checkpoint over the first vectors stays as it is.
STREAMS = [*GOLDEN["streams"], *GOLDEN["added_streams"]]
EVENTS = [event for stream in STREAMS for event in stream["events"]]


def test_every_event_type_has_a_golden_vector():
    assert {json.loads(event["body"])["type"] for event in EVENTS} == set(e.EVENT_TYPES)


def test_every_field_of_every_event_type_is_in_a_golden_vector():
    for event_type, model in e.EVENT_TYPES.items():
        bodies = [body for body in (json.loads(event["body"]) for event in EVENTS) if body["type"] == event_type]
        unused = set(model.model_fields).difference(*bodies)
        assert unused <= {"parent_attempt_id", "attempt_id", "elapsed_us"}, event_type


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: json.loads(event["body"])["type"])
def test_an_event_is_stored_as_its_golden_body(event):
    parsed = e.parse_event(json.loads(event["body"]))
    assert body_of(parsed).decode() == event["body"]
    assert body_hash(body_of(parsed)).hex() == event["body_hash"]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: json.loads(event["body"])["type"])
def test_a_golden_body_is_canonical_json(event):  # RFC 8785
    assert rfc8785.dumps(json.loads(event["body"])) == event["body"].encode()


@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream["stream_id"])
def test_links_chain_from_the_ledger_and_the_stream_to_the_last_event(stream):
    link = genesis_link(GOLDEN["ledger_id"], stream["stream_id"])
    assert link.hex() == stream["genesis_link"]
    for event in stream["events"]:
        link = next_link(link, event["seq"], event["recorded_us"], bytes.fromhex(event["body_hash"]))
        assert link.hex() == event["link"]


@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream["stream_id"])
def test_the_golden_chain_can_be_recomputed_with_nothing_but_a_hash_function(stream):
    def sha256(*parts: bytes) -> bytes:
        return hashlib.sha256(b"".join(parts)).digest()

    identity = GOLDEN["ledger_id"].encode() + b"\0" + stream["stream_id"].encode()
    link = sha256(b"tachograph/genesis/v1\0", identity)
    for event in stream["events"]:
        hash_of_body = sha256(b"tachograph/body/v1\0", event["body"].encode())
        place = event["seq"].to_bytes(8, "big") + event["recorded_us"].to_bytes(8, "big")
        link = sha256(b"tachograph/link/v1\0", link, place, hash_of_body)
        assert (hash_of_body.hex(), link.hex()) == (event["body_hash"], event["link"])


@pytest.mark.parametrize("content", GOLDEN["contents"], ids=lambda content: content["digest"][:8])
def test_a_content_digest_is_a_hash_over_salt_media_type_and_data(content):
    salt, data = bytes.fromhex(content["salt"]), bytes.fromhex(content["data"])
    assert content_digest(salt, Content(data, content["media_type"])) == content["digest"]
    plain = b"tachograph/content/v1\0" + salt + content["media_type"].encode() + b"\0" + data
    assert hashlib.sha256(plain).hexdigest() == content["digest"]


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["case_id"][:13])
def test_the_id_of_a_case_is_a_hash_over_the_id_of_its_run(case):
    assert case_id_of(case["run_id"]) == case["case_id"] == check_id("case_id", case["case_id"])
    plain = hashlib.sha256(b"tachograph/case/v1\0" + case["run_id"].encode()).hexdigest()
    assert case["case_id"] == f"case-{plain}"


names = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=40)
integers = st.integers(-(2**53) + 1, 2**53 - 1)


@given(st.dictionaries(names, st.one_of(st.booleans(), integers, names, st.dictionaries(names, integers))))
def test_what_a_body_may_hold_is_serialized_as_rfc_8785_says(fields):  # D9
    assert orjson.dumps(fields, option=orjson.OPT_SORT_KEYS) == rfc8785.dumps(fields)
    assert canonical(fields).encode() == rfc8785.dumps(fields)


@pytest.mark.parametrize("kind", [dict, MappingProxyType, UserDict, OrderedDict])
def test_a_body_is_the_same_whatever_kind_of_map_its_event_was_made_with(kind):
    limits, labels = {"tool:b": 2, "model_calls": 1}, {"tier": "gold", "area": "eu"}
    plain = ScriptedRun().event(e.RunStarted, limits=limits, labels=labels, timeout_us=1)
    event = ScriptedRun().event(e.RunStarted, limits=kind(limits), labels=kind(labels), timeout_us=1)
    assert body_of(event) == body_of(plain)
    assert json.loads(body_of(event)) == event.model_dump(exclude_none=True)


def test_an_event_with_as_many_long_labels_as_allowed_is_too_large_and_says_so():
    labels = {f"{number:03}" + "k" * 250: "v" * 256 for number in range(64)}
    event = ScriptedRun().event(e.RunStarted, limits={}, timeout_us=1, labels=labels)
    with pytest.raises(TooLarge) as caught:
        body_of(event)
    assert caught.value.limit_bytes == MAX_BODY_BYTES
    assert caught.value.size_bytes > MAX_BODY_BYTES
