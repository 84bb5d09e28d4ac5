"""Free text and bytes: what is kept of any value, and under which digest (SPEC D10, E10)."""

import dataclasses
import hashlib
import json
import math
from enum import Enum
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import BaseModel

from harness.content import JSON, OCTETS, TEXT, Content, Sealer, content_digest, encode_content
from tests.harness.fakes import CountingIds, shown


class Colour(Enum):
    RED = "red"


class Model(BaseModel):
    name: str


@dataclasses.dataclass
class Record:
    model: Model
    tags: frozenset[str]


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError("no looks")


class Liar(BaseModel):
    def model_dump(self, **options: Any) -> Any:
        raise KeyError("no dump")


@pytest.mark.parametrize(
    ("value", "data", "media_type"),
    [
        ("", b"", TEXT),
        ("naïve 🙂\0", "naïve 🙂\0".encode(), TEXT),
        ("\udc00", b'"\\udc00"', JSON),
        (b"\x00\xff", b"\x00\xff", OCTETS),
        (bytearray(b"a"), b"a", OCTETS),
        (memoryview(b"abc")[1:], b"bc", OCTETS),
        (Content(b"x", "image/png"), b"x", "image/png"),
        (None, b"null", JSON),
        (True, b"true", JSON),
        (2**63, b"9223372036854775808", JSON),
        (-0.0, b"-0.0", JSON),
        (1e-07, b"1e-07", JSON),
        (float("nan"), b"NaN", JSON),
        (float("-inf"), b"-Infinity", JSON),
        ({"": 1, "é": 2, "e\u0301": 3, "🙂": "\udc00"}, None, JSON),
        ((1, "a", None), b'[1,"a",null]', JSON),
        (Colour.RED, b'"red"', JSON),
        (Model(name="n"), b'{"name":"n"}', JSON),
        (Record(Model(name="n"), frozenset({"t"})), b'{"model":{"name":"n"},"tags":["t"]}', JSON),
        (MappingProxyType({"a": 1}), b'{"a":1}', JSON),
        ({"inner": b"\xff"}, b'{"inner":"b\'\\\\xff\'"}', JSON),
        ({(1, 2): 3}, b"{(1, 2): 3}", TEXT),
    ],
    ids=shown,
)
def test_each_value_has_its_bytes_and_media_type(value: Any, data: bytes | None, media_type: str):  # D10, CASES 27
    content = encode_content(value)
    assert content.media_type == media_type
    assert data is None or content.data == data


@pytest.mark.parametrize(
    "value",
    [
        {"": 1, "é": 2, "e\u0301": 3, "🙂": "\udc00"},
        [-0.0, 1e-07, 2**63, -(2**200), math.pi, 5e-324, float("inf")],
        "\udc00 alone",
        {"deep": json.loads("[" * 130 + "]" * 130)},
    ],
    ids=["keys", "numbers", "surrogate", "nesting"],
)
def test_a_json_value_reads_back_exactly(value: Any):  # CASES 27
    read = json.loads(encode_content(value).data)
    assert repr(read) == repr(value)


@pytest.mark.parametrize("value", [Silent(), [Silent()], {"a": Silent()}, Liar(), 10**5000, [10**5000]], ids=type)
def test_a_value_that_refuses_to_be_written_is_kept_by_its_look_or_its_type(value: Any):  # CASES 27
    assert encode_content(value).data != b""


def test_a_value_that_holds_itself_is_kept_by_its_look():
    knot: list[Any] = []
    knot.append(knot)
    assert encode_content(knot) == Content(b"[[...]]", TEXT)


def test_the_digest_is_salted_and_binds_the_media_type():  # E10
    salt = bytes(range(32))
    digest = content_digest(salt, Content(b"because", TEXT))
    expected = hashlib.sha256(b"tachograph/content/v1\0" + salt + b"text/plain; charset=utf-8\0because").hexdigest()
    assert digest == expected == "56f93d52eea1bdbefa9e0bdce289baffe3c956e0ecfff71d3937cf6e382a4e6e"
    assert content_digest(salt, Content(b"because", JSON)) != digest
    assert content_digest(bytes(32), Content(b"because", TEXT)) != digest


def sealer() -> Sealer:
    return Sealer(CountingIds().salt)


def test_equal_contents_of_a_run_share_one_salt_and_are_submitted_once():  # D10
    sealing = sealer()
    first, is_new = sealing.seal(Content(b"x", TEXT), keep=True)
    again, is_new_again = sealing.seal(Content(b"x", TEXT), keep=True)
    assert (is_new, is_new_again) == (True, False)
    assert (first.digest, first.salt) == (again.digest, again.salt)
    assert (first.data, first.size_bytes, again.data) == (b"x", 1, None)


@pytest.mark.parametrize("other", [Content(b"y", TEXT), Content(b"x", JSON)])
def test_other_contents_have_another_salt(other: Content):  # D10
    sealing = sealer()
    first, _ = sealing.seal(Content(b"x", TEXT), keep=True)
    second, is_new = sealing.seal(other, keep=True)
    assert is_new
    assert first.salt != second.salt


def test_what_was_digest_only_is_submitted_again_once_it_is_to_be_kept():  # D10
    sealing = sealer()
    digest_only, _ = sealing.seal(Content(b"x", TEXT), keep=False)
    assert digest_only.data is None
    kept, is_new = sealing.seal(Content(b"x", TEXT), keep=True)
    assert (kept.data, is_new) == (b"x", True)
    assert (kept.digest, kept.salt) == (digest_only.digest, digest_only.salt)
    assert [sealing.seal(Content(b"x", TEXT), keep=keep)[1] for keep in (True, False)] == [False, False]


def test_the_memory_of_salts_is_bounded_and_holds_no_bytes():  # D10
    sealing = sealer()
    for number in range(3000):
        sealing.seal(Content(b"%d" % number, TEXT), keep=True)
    assert len(sealing._seen) == 1024
    assert {(len(digest), len(salt), kept) for digest, salt, kept in sealing._seen.values()} == {(64, 32, True)}


def test_after_a_loss_everything_is_sealed_anew():  # D1, D10
    sealing = sealer()
    first, _ = sealing.seal(Content(b"x", TEXT), keep=True)
    sealing.forget()
    second, is_new = sealing.seal(Content(b"x", TEXT), keep=True)
    assert is_new
    assert first.salt != second.salt
