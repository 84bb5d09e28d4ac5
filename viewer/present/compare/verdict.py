"""A comparison in a few sentences: whether two runs took the same course, where they part, and what the second used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ledger.audit.comparing.comparing import Comparison, Delta, Difference, Entry
from ledger.words.codes import amount, noun
from ledger.words.format import duration, money, plural
from ledger.words.text import shorten
from viewer.present.sentence import Part, Sentence

FIGURES_TOLD = ("total_tokens", "cost_micros")
"""What the verdict tells of usage; the table has the rest."""
_CONTENTS = ("input", "output", "question")
_VALUE_CHARS_MAX = 80
_SIDES = {"only_a": "only the first run has it", "only_b": "only the second run has it"}


def sentences(found: Comparison) -> tuple[Part, ...]:
    """The comparison in one breath."""
    said: list[Sentence] = [_course(found), _figures(found)]
    if found.unknown_count:
        contents = plural(found.unknown_count, "content")
        said.append(
            [f"Of {contents} it cannot be told: of the same size, and not kept, erased or damaged on one side."]
        )
    if not found.is_longest:
        said.append(["They differ so much that more may be in common than was laid side by side."])
    parts: list[Part] = []
    for sentence in filter(None, said):
        parts.append(Part(" ")) if parts else None
        parts.extend(Part(each) if isinstance(each, str) else each for each in sentence)
    return tuple(parts)


def parting(found: Comparison) -> Entry | None:
    """The first boundary at which the runs go different ways; None where they take the same course."""
    return next((entry for entry in found.entries if _parts(entry)), None)


def _course(found: Comparison) -> Sentence:
    if _keys(found, "a") == _keys(found, "b"):
        return ["Both are the same run."]
    entry = parting(found)
    if entry is not None:
        return ["They part at ", Part(_title(entry), code=True), ": ", *_how(entry)]
    changed = [entry for entry in found.entries if _content_differences(entry)]
    if changed:
        where = plural(len(changed), "boundary", "boundaries")
        what = " and ".join(each.what for each in _content_differences(changed[0]))
        return [
            f"Same course, with other contents at {where}; first the {what} of ",
            Part(_title(changed[0]), code=True),
            ".",
        ]
    if found.differences:
        told = [each.what for each in found.differences]
        more = f" and {len(told) - 3} more" if len(told) > 3 else ""
        return ["Same course; the runs differ in ", Part(", ".join(told[:3])), f"{more}."]
    return ["Same course."]


def _how(entry: Entry) -> Sentence:
    if entry.sign in _SIDES:
        return [f"{_SIDES[entry.sign]}."]
    each = _partings(entry)[0]
    return [f"{each.what} ", _value(each.a), " in the first run, ", _value(each.b), " in the second."]


def _value(text: str) -> Part:
    return Part(shorten(text, _VALUE_CHARS_MAX), code=True)


def _parts(entry: Entry) -> bool:
    return entry.a is None or entry.b is None or bool(_partings(entry))


def _partings(entry: Entry) -> Sequence[Difference]:
    """Differences of the course, rather than of what was said or used."""
    return [each for each in entry.differences if each.what in ("place", "outcome", "attempts", "failures", "effect")]


def _content_differences(entry: Entry) -> Sequence[Difference]:
    return [each for each in entry.differences if each.what in _CONTENTS]


def _title(entry: Entry) -> str:
    crossing = entry.a or entry.b
    assert crossing is not None, "an entry has a side"
    return shorten(crossing.title, _VALUE_CHARS_MAX)


def _keys(found: Comparison, side: str) -> tuple[str, str]:
    summary = (found.a if side == "a" else found.b).run.summary
    return summary.session_id, summary.run_id


def _figures(found: Comparison) -> Sentence:
    told = list(_changes(found))
    return [f"The second {' and '.join(told)}."] if told else []


def _changes(found: Comparison) -> Iterator[str]:
    elapsed = found.elapsed_us
    if elapsed.a is not None and elapsed.b is not None and elapsed.a != elapsed.b:
        yield f"took {duration(abs(elapsed.b - elapsed.a))} {'longer' if elapsed.b > elapsed.a else 'less'}"
    by_name = {delta.name: delta for delta in found.usage}
    for name in FIGURES_TOLD:
        delta = by_name.get(name)
        if delta is not None and change(delta):
            fewer = "less" if name == "cost_micros" else "fewer"
            yield f"used {_used(name, delta, found)} {'more' if change(delta) > 0 else fewer}"


def _used(name: str, delta: Delta, found: Comparison) -> str:
    number = abs(change(delta))
    if name == "cost_micros":
        return f"{money(number)} {found.b.run.currency or found.a.run.currency or 'of cost'}"
    return f"{amount(name, number)} {noun(name).removeprefix('total ')}"


def change(delta: Delta) -> int:
    """How much more the second has; what was never charged is none."""
    return (delta.b or 0) - (delta.a or 0)
