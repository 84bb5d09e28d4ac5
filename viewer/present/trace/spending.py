"""What the timeline's panel shows of each enforced limit: how its use rose over time, those that mattered first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ledger.records import RunDetail
from ledger.words.codes import amount, resource
from ledger.words.format import count, elapsed
from viewer.present.timeline.consumption import Level, Levels, consumption, consumption_of_works
from viewer.present.timeline.curves import Curve, curve
from viewer.present.timeline.scale import Scale
from viewer.present.trace.gauges import binding, enforced_limits
from viewer.reading.run import RunReading
from viewer.words import gettext as _

MATTERED_SHARE = 0.5
"""A limit of which at least this much was used is shown at once."""
SHOWN_MAX = 4
CHANGES_TOLD_MAX = 12


@dataclass(frozen=True, slots=True)
class Spent:
    """One limit over time."""

    label: str
    used: str
    limit: str
    is_binding: bool
    curve: Curve
    told: Sequence[str]
    """The exact figure of each step of the curve."""
    words: str
    """The same for who does not see it."""


@dataclass(frozen=True, slots=True)
class Spending:
    """All limits over time."""

    shown: tuple[Spent, ...]
    others: tuple[Spent, ...]
    is_from_lines: bool
    """Whether it tells of calls alone, as steps and tools began, since there are too many events to read."""

    @property
    def has_reserved(self) -> bool:
        """Whether any curve has a part that is only reserved."""
        return any(each.curve.has_reserved for each in (*self.shown, *self.others))


def spending(reading: RunReading, scale: Scale, until_us: int) -> Spending:
    """The binding limit first, then by how much of it was used; a limit of which nothing was used is left out."""
    whole = reading.whole
    if reading.complete:
        levels = consumption(reading.events)
    else:
        levels = consumption_of_works(reading.whole_works)
    limits, bound = enforced_limits(whole.run), binding(whole.run)
    shares = dict(_shares(levels, limits))
    ordered = sorted(shares, key=lambda key: (key != bound, -shares[key]))
    mattered = [key for key in ordered if key == bound or shares[key] >= MATTERED_SHARE][:SHOWN_MAX]
    spent = {key: _spent(whole.run, key, levels[key], limits[key], scale, until_us) for key in ordered}
    return Spending(
        shown=tuple(spent[key] for key in mattered),
        others=tuple(spent[key] for key in ordered if key not in mattered),
        is_from_lines=not reading.complete,
    )


def _shares(levels: Levels, limits: dict[str, int]) -> Iterator[tuple[str, float]]:
    for key, limit in limits.items():
        peak = max((level.used for level in levels.get(key, ())), default=0)
        if peak or any(level.unknown_count for level in levels.get(key, ())):
            yield key, peak / limit if limit else 1.0


def _spent(run: RunDetail, key: str, levels: Sequence[Level], limit: int, scale: Scale, until_us: int) -> Spent:
    last = levels[-1]
    least = "≥ " if last.unknown_count else ""
    course = curve(levels, limit, scale, until_us)
    changes = [f"{_figures(key, level)} {_when(level)}" for level in levels[:CHANGES_TOLD_MAX]]
    left_out = len(levels) - len(changes)
    return Spent(
        label=resource(key),
        # Of a long run the curve may miss what the run was charged beside its steps and tools.
        used=f"{least}{amount(key, run.usage.get(key, last.used))}",
        limit=amount(key, limit),
        is_binding=key == binding(run),
        curve=course,
        told=[f"{_figures(key, step.level, limit)} {_when(step.level)}" for step in course.steps],
        words=_("%(changes)s, and %(number)s changes more", changes=", ".join(changes), number=count(left_out))
        if left_out
        else ", ".join(changes),
    )


def _figures(key: str, level: Level, limit: int | None = None) -> str:
    used = amount(key, level.used)
    parts = [used if limit is None else _("%(used)s of %(limit)s", used=used, limit=amount(key, limit))]
    parts += [_("%(amount)s of it reserved", amount=amount(key, level.reserved))] if level.reserved else []
    if level.unknown_count:
        not_known = _("%(number)s not priced") if key == "cost_micros" else _("%(number)s not reported")
        parts.append(not_known % {"number": count(level.unknown_count)})
    return ", ".join(parts)


def _when(level: Level) -> str:
    return _("at %(seconds)s s", seconds=elapsed(level.at_us))
