"""A sentence in parts, so that names which the run's own program chose can be told from ours."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a sentence; `code` for names that the run's own program chose."""

    text: str
    code: bool = False


Sentence = list[Part | str]
_PLACE = re.compile(r"%\((\w+)\)s")


def sentence(message: str, /, **facts: "str | Part | Sentence") -> Sentence:
    """A message, in the reader's language already, with each `%(name)s` replaced by a part or a few."""
    found: Sentence = []
    for position, piece in enumerate(_PLACE.split(message)):
        fact = facts[piece] if position % 2 else piece
        found += fact if isinstance(fact, list) else [fact] if fact else []
    return found
