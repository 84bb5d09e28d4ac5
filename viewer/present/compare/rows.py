"""The boundaries of two runs as rows of a page: stretches that are alike are folded and counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from ledger.audit.comparing.comparing import Difference, Entry, Sign
from ledger.audit.comparing.crossings import Crossing
from ledger.words.format import duration
from ledger.words.text import shorten

ROWS_PER_PAGE = 200
FOLDED_FROM = 4
"""So many boundaries in a row that are alike become one row,"""
CONTEXT = 1
"""but for those next to a difference."""
TITLE_CHARS_MAX = 120
VALUE_CHARS_MAX = 200

Shown = Literal["folded", "differences", "all"]
SHOWN: tuple[Shown, ...] = get_args(Shown)


@dataclass(frozen=True, slots=True)
class Side:
    """A boundary of one run."""

    seq: int
    """Of its first event."""
    outcome: str
    lasted: str


@dataclass(frozen=True, slots=True)
class Row:
    """A boundary of either run, or a stretch of those that are alike."""

    sign: Sign | Literal["unknown"]
    """`unknown` where no difference was found, and of some content nobody can tell."""
    kind: str = ""
    title: str = ""
    a: Side | None = None
    b: Side | None = None
    differences: Sequence[Difference] = ()
    cannot_tell: Sequence[str] = ()
    folded_count: int = 0
    """Boundaries that the row stands for, where it is a stretch of them."""


def rows_of(entries: Sequence[Entry], shown: Shown) -> list[Row]:
    """All rows, in order."""
    if shown == "all":
        return [_row(entry) for entry in entries]
    if shown == "differences":
        return [_row(entry) for entry in entries if not _is_plain(entry)]
    return list(_folded(entries))


def _folded(entries: Sequence[Entry]) -> Iterator[Row]:
    alike: list[Entry] = []
    is_first = True
    for entry in entries:
        if _is_plain(entry):
            alike.append(entry)
            continue
        yield from _stretch(alike, before=0 if is_first else CONTEXT, after=CONTEXT)
        alike, is_first = [], False
        yield _row(entry)
    yield from _stretch(alike, before=0 if is_first else CONTEXT, after=0)


def _stretch(alike: Sequence[Entry], *, before: int, after: int) -> Iterator[Row]:
    """Boundaries that are alike, of which those next to a difference stay."""
    if len(alike) - before - after < FOLDED_FROM:
        yield from map(_row, alike)
        return
    yield from map(_row, alike[:before])
    yield Row("same", folded_count=len(alike) - before - after)
    yield from map(_row, alike[len(alike) - after :])


def _is_plain(entry: Entry) -> bool:
    return entry.sign == "same" and not entry.cannot_tell


def _row(entry: Entry) -> Row:
    one = entry.a or entry.b
    assert one is not None, "an entry has a side"
    return Row(
        sign="unknown" if entry.sign == "same" and entry.cannot_tell else entry.sign,
        kind=one.kind,
        title=shorten(one.title, TITLE_CHARS_MAX),
        a=_side(entry.a),
        b=_side(entry.b),
        differences=[
            Difference(each.what, shorten(each.a, VALUE_CHARS_MAX), shorten(each.b, VALUE_CHARS_MAX))
            for each in entry.differences
        ],
        cannot_tell=tuple(entry.cannot_tell),
    )


def _side(crossing: Crossing | None) -> Side | None:
    if crossing is None:
        return None
    lasted = "" if crossing.duration_us is None else duration(crossing.duration_us)
    return Side(crossing.seq, shorten(crossing.outcome, VALUE_CHARS_MAX), lasted)
