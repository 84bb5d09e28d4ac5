"""Any value that JSON can carry is read back exactly; nothing else is lost without a trace (SPEC D10, CASES 27)."""

import json
import re
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from harness.content import JSON, OCTETS, TEXT, encode_content

texts = st.text(st.characters(), max_size=20).filter(lambda text: not re.search("[\ud800-\udbff][\udc00-\udfff]", text))
"""Of any characters, lone surrogates too; a pair of them is the one character that it spells, for any JSON reader."""
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=12,
)


@given(values)
@example({"\udc00": "\u0000", "": float("nan"), "é": 2**63, "e\u0301": -0.0, "🙂": 1e-07})
def test_a_json_value_reads_back_exactly_from_ascii_bytes(value: Any):
    content = encode_content(value)
    if isinstance(value, str) and content.media_type == TEXT:
        assert content.data.decode("utf-8") == value
        return
    assert content.media_type == JSON
    assert content.data.isascii()
    assert repr(json.loads(content.data)) == repr(value)


@given(st.binary(max_size=50))
def test_bytes_are_kept_as_they_are(data: bytes):
    content = encode_content(data)
    assert (content.data, content.media_type) == (data, OCTETS)


odd = st.one_of(scalars, st.binary(max_size=9), st.complex_numbers(), st.just(object))


@given(st.recursive(odd, lambda inner: st.tuples(inner, inner) | st.dictionaries(odd, inner, max_size=3)))
def test_any_other_value_has_bytes_and_the_same_ones_again(value: Any):
    content = encode_content(value)
    assert content == encode_content(value)
    assert content.data or value in ("", b"")
