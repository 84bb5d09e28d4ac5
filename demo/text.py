"""Text from elsewhere: whether there is anything to read in it, and what of it can be sent on."""

import unicodedata
from collections.abc import Iterator
from typing import Any

import orjson

BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Called letters or symbols, and drawn as nothing: the fillers of Hangul, the empty Braille cell."""


def is_blank(text: str) -> bool:
    """Whether a reader would see nothing: spaces, control and format characters, marks without a letter."""
    return not any(unicodedata.category(char)[0] in "LNPS" and char not in BLANK_LETTERS for char in text)


def whole(text: str) -> str:
    """Text that UTF-8 can carry: each half of a surrogate pair is replaced by `�`."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def beginning(text: str, chars_max: int) -> str:
    """The text, or as much of it as leaves room for the `…` that then ends it."""
    return text if len(text) <= chars_max else f"{text[: chars_max - 1]}…"


def json_object(text: str) -> dict[str, Any] | None:
    """The JSON object that a text holds; None if it holds anything else."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def paragraphs(text: str) -> Iterator[str]:
    """A text in pieces; put together again they are the text."""
    pieces = text.split("\n\n")
    yield from (f"{piece}\n\n" for piece in pieces[:-1])
    yield pieces[-1]
