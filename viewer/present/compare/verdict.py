"""A comparison in a few sentences: whether two runs took the same course, where they part, and what the second used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ledger.audit.comparing.comparing import Comparison, Delta, Difference, Entry
from ledger.words.codes import amount, noun
from ledger.words.format import count, duration, money
from ledger.words.text import shorten
from viewer.present.sentence import Moment, Part, Sentence, joined, sentence
from viewer.words import N_, found_for, ngettext
from viewer.words import gettext as _

FIGURES_TOLD = ("total_tokens", "cost_micros")
"""What the verdict tells of usage; the table has the rest."""
_CONTENTS = ("input", "output", "question")
_VALUE_CHARS_MAX = 80
_SIDES = {"only_a": N_("only the first run has it."), "only_b": N_("only the second run has it.")}


def sentences(found: Comparison) -> tuple[Part | Moment, ...]:
    """The comparison in one breath."""
    said: list[Sentence] = [_course(found), _figures(found)]
    if found.unknown_count:
        unknown = ngettext(
            "Of %(num)s content it cannot be told: of the same size, and not kept, erased or damaged on one side.",
            "Of %(num)s contents it cannot be told: of the same size, and not kept, erased or damaged on one side.",
            found.unknown_count,
        )
        said.append([unknown])
    if not found.is_longest:
        said.append([_("They differ so much that more may be in common than was laid side by side.")])
    return joined(said)


def parting(found: Comparison) -> Entry | None:
    """The first boundary at which the runs go different ways; None where they take the same course."""
    return next((entry for entry in found.entries if _parts(entry)), None)


def _course(found: Comparison) -> Sentence:
    if _keys(found, "a") == _keys(found, "b"):
        return [_("Both are the same run.")]
    entry = parting(found)
    if entry is not None:
        return sentence(_("They part at %(place)s: %(how)s"), place=Part(_title(entry), code=True), how=_how(entry))
    changed = [entry for entry in found.entries if _content_differences(entry)]
    if changed:
        what = _(" and ").join(each.what for each in _content_differences(changed[0]))
        course = found_for(
            "Same course, with other contents at %(num)s boundary; first the %(what)s of %(place)s.",
            "Same course, with other contents at %(num)s boundaries; first the %(what)s of %(place)s.",
            len(changed),
        )
        return sentence(course, num=count(len(changed)), what=what, place=Part(_title(changed[0]), code=True))
    if found.differences:
        told = [each.what for each in found.differences]
        first = ", ".join(told[:3])
        if len(told) > 3:
            more = count(len(told) - 3)
            return [_("Same course; the runs differ in %(things)s and %(number)s more.", things=first, number=more)]
        return [_("Same course; the runs differ in %(things)s.", things=first)]
    return [_("Same course.")]


def _how(entry: Entry) -> Sentence:
    if entry.sign in _SIDES:
        return [_(_SIDES[entry.sign])]
    each = _partings(entry)[0]
    said = _("%(what)s %(a)s in the first run, %(b)s in the second.")
    return sentence(said, what=each.what, a=_value(each.a), b=_value(each.b))


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
    return [_("The second %(did)s.", did=_(" and ").join(told))] if told else []


def _changes(found: Comparison) -> Iterator[str]:
    elapsed = found.elapsed_us
    if elapsed.a is not None and elapsed.b is not None and elapsed.a != elapsed.b:
        longer, shorter = _("took %(time)s longer"), _("took %(time)s less")
        yield (longer if elapsed.b > elapsed.a else shorter) % {"time": duration(abs(elapsed.b - elapsed.a))}
    by_name = {delta.name: delta for delta in found.usage}
    for name in FIGURES_TOLD:
        delta = by_name.get(name)
        if delta is not None and change(delta) and found.is_told(delta):
            more = _("used %(amount)s more")
            less = _("used %(amount)s less") if name == "cost_micros" else _("used %(amount)s fewer")
            yield (more if change(delta) > 0 else less) % {"amount": _used(name, delta, found)}


def _used(name: str, delta: Delta, found: Comparison) -> str:
    number = abs(change(delta))
    if name == "cost_micros":
        return f"{money(number)} {found.b.run.currency or found.a.run.currency or _('of cost')}"
    return f"{amount(name, number)} {noun(name).removeprefix('total ')}"


def change(delta: Delta) -> int:
    """How much more the second has; what was never charged is none."""
    return (delta.b or 0) - (delta.a or 0)
