"""Whether an answer stands on what tools returned: each log line that it quotes, and each share in percent."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

QUOTATION = re.compile(r"`([^`\n]+)`")
SHARE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?) ?%")
SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Citations:
    """What an answer cites."""

    founded: tuple[str, ...]
    """Quotations and figures that a tool did return."""
    unfounded: tuple[str, ...]
    """Those that none did."""

    @property
    def are_sound(self) -> bool:
        """Whether there is any evidence in the answer, and none that was made up."""
        return bool(self.founded) and not self.unfounded


def citations(answer: str, values: Iterable[Mapping[str, Any]]) -> Citations:
    """What the answer cites, looked up in the results of the run's tools."""
    facts = [fact for value in values for fact in _facts(value)]
    texts = [_plain(fact) for fact in facts if isinstance(fact, str)]
    figures = {float(fact) for fact in facts if not isinstance(fact, str)}
    figures |= {float(share) for text in texts for share in SHARE.findall(text)}
    # What has a space in it is a line, and no name.
    lines = [text for text in QUOTATION.findall(answer) if SPACES.search(text)]
    cited = {f"`{text}`": _is_in(text, texts) for text in lines}
    # Figures inside a quotation are part of it.
    cited |= {f"{share}%": float(share) in figures for share in SHARE.findall(QUOTATION.sub(" ", answer))}
    return Citations(
        tuple(text for text, is_found in cited.items() if is_found),
        tuple(text for text, is_found in cited.items() if not is_found),
    )


def _is_in(quotation: str, texts: list[str]) -> bool:
    wanted = _plain(quotation.rstrip("…"))
    return any(wanted in text for text in texts)


def _facts(value: object) -> Iterator[str | int | float]:
    """Every text and figure in it, however deep."""
    if isinstance(value, Mapping):
        for part in value.values():
            yield from _facts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _facts(part)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value


def _plain(text: str) -> str:
    """As a quotation shows a line: one line, without marks that would end it."""
    printable = "".join(char if char.isprintable() else " " for char in text)
    return SPACES.sub(" ", printable.replace("`", "'")).strip()
