"""A sentence in parts, so that names which the run's own program chose, and times, can be told from our words."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ledger.words.format import day_time


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a sentence; `code` for names that the run's own program chose."""

    text: str
    code: bool = False


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time, which a page says in the reader's own zone, too."""

    at_us: int

    @property
    def text(self) -> str:
        """In UTC."""
        return day_time(self.at_us)


Sentence = list[Part | Moment | str]
_PLACE = re.compile(r"%\((\w+)\)s")


def sentence(message: str, /, **facts: "str | Part | Moment | Sentence") -> Sentence:
    """A message, in the reader's language already, with each `%(name)s` replaced by a part or a few."""
    found: Sentence = []
    for position, piece in enumerate(_PLACE.split(message)):
        fact = facts[piece] if position % 2 else piece
        found += fact if isinstance(fact, list) else [fact] if fact else []
    return found


def joined(sentences: Iterable[Sentence | None], separator: str = " ") -> tuple[Part | Moment, ...]:
    """Those that say anything as one, with the separator between them."""
    parts: list[Part | Moment] = []
    for each in filter(None, sentences):
        parts += [Part(separator)] if parts else []
        parts += [Part(part) if isinstance(part, str) else part for part in each]
    return tuple(parts)


def words(said: str | Sequence[Part | Moment | str]) -> str:
    """A sentence as plain words."""
    return said if isinstance(said, str) else "".join(each if isinstance(each, str) else each.text for each in said)
