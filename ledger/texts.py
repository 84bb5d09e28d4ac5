"""The words of a run's texts, by which it is found: the same words on every engine, and the same meaning of a search.

Questions, answers and error messages are searched, one after the other as if they were one text. A search is words,
phrases in quotation marks, and a `*` behind the beginning of a word; all of them must be there. Whatever else it
holds is text too: `host-7` is the word `host` with the word `7` after it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from harness.errors import InvalidInput
from ledger.compression import DamagedContent, unpack_beginning

INDEXED_BYTES = 8_192
"""Of each text; what comes after them is not searched."""
INDEXED_STORED_BYTES = INDEXED_BYTES + 128 * 1024
"""This much of what is stored of a text is enough for it: packed, a block may have to be read whole."""
WORD_CHARS_MAX = 100
"""Of a longer word only the beginning counts."""
SEARCH_CHARS_MAX = 500
TERMS_MAX = 16

# Where words are not set apart by spaces, each character is one.
_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W_{_IDEOGRAPHS}]+")
_TERM = re.compile(r'"([^"]*)"(\*?)|([^\s"]+)')

StoredText = tuple[bytes | None, str | None]
"""The beginning of a content as it is stored, and how that is packed."""


class Term(NamedTuple):
    """Words that must come one after the other."""

    words: tuple[str, ...]
    is_prefix: bool
    """Whether the last of them may go on."""


def words_in(text: str) -> Iterator[str]:
    """The words of a text, without their case."""
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        yield word[:WORD_CHARS_MAX]


def indexed(texts: Iterable[StoredText]) -> str:
    """The words of a run's texts, as they are put into the index; empty if there are none to be read."""
    return " ".join(word for stored in texts for word in words_in(_text(*stored)))


def terms_of(search: object) -> tuple[Term, ...]:
    """What is searched for; `InvalidInput` if it is nothing, or too much."""
    if not isinstance(search, str) or len(search) > SEARCH_CHARS_MAX:
        raise InvalidInput("text", f"must be at most {SEARCH_CHARS_MAX} characters")
    terms = []
    for phrase, star, plain in _TERM.findall(search):
        words = tuple(words_in(phrase or plain))
        if words:
            terms.append(Term(words, bool(star) or plain.endswith("*")))
    if not terms:
        raise InvalidInput("text", "must have a word in it")
    if len(terms) > TERMS_MAX:
        raise InvalidInput("text", f"must be at most {TERMS_MAX} words and phrases")
    return tuple(terms)


def as_fts5(terms: Iterable[Term]) -> str:
    """The search as SQLite's full text search has it; words hold nothing that means something there."""
    return " AND ".join(f'"{" ".join(term.words)}"{" *" if term.is_prefix else ""}' for term in terms)


def as_tsquery(terms: Iterable[Term]) -> str:
    """The same for `to_tsquery` of PostgreSQL."""
    return " & ".join(
        "(" + " <-> ".join(f"'{word}'" for word in term.words) + (":*)" if term.is_prefix else ")") for term in terms
    )


def _text(stored: bytes | None, encoding: str | None) -> str:
    if stored is None:
        return ""
    try:
        return unpack_beginning(stored, encoding, INDEXED_BYTES).decode("utf-8", "replace")
    except DamagedContent:
        return ""
