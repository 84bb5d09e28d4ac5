"""What is searched for means the same whatever is typed, and is never an error of a database (D19, E10)."""

import sqlite3

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.errors import InvalidInput
from ledger.texts import as_fts5, indexed, terms_of, words_in

ANYTHING = st.text(max_size=60) | st.text("\"*()^:-+{}AND OR NOT NEAR'\\ab ", max_size=60)


@pytest.fixture(scope="module")
def index():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE found USING fts5(words, tokenize='ascii')")
    return connection


def has(words, term):
    size = len(term.words)
    for at in range(len(words) - size + 1):
        *before, last = words[at : at + size]
        fits = last.startswith(term.words[-1]) if term.is_prefix else last == term.words[-1]
        if fits and tuple(before) == term.words[:-1]:
            return True
    return False


@given(text=ANYTHING, search=ANYTHING)
@example(text="NEAR", search="NEAR(a b)")
@example(text="a\0b", search='"a\0b"*')
def test_whatever_is_typed_is_words_and_finds_what_has_them(index, text, search):
    try:
        terms = terms_of(search)
    except InvalidInput:
        return
    words = indexed([(text.encode("utf-8", "replace"), None)])
    index.execute("DELETE FROM found")
    index.execute("INSERT INTO found (words) VALUES (?)", (words,))
    (count,) = index.execute("SELECT count(*) FROM found WHERE found MATCH ?", (as_fts5(terms),)).fetchone()
    assert bool(count) == all(has(words.split(" "), term) for term in terms)


@given(st.text(max_size=200))
def test_words_hold_nothing_that_an_index_or_a_query_would_take_for_something_else(text):
    for word in words_in(text):
        assert word
        assert not set(word) & set(" \"'*:&|!()<>-_\\\0")


def test_a_text_is_found_by_its_words_in_any_case_and_width():
    assert list(words_in("Größe: ＡＢＣ １２ naïve_x")) == ["grösse", "abc", "12", "naïve", "x"]
    assert list(words_in("数据库OK")) == ["数", "据", "库", "ok"]
