"""A sentence in parts, so that names which the run's own program chose can be told from ours."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a sentence; `code` for names that the run's own program chose."""

    text: str
    code: bool = False


Sentence = list[Part | str]
