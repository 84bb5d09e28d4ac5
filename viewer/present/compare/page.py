"""All that the page of a comparison shows, put together; the template only places it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ledger.audit.comparing.comparing import Comparison, Delta, Difference
from ledger.records import RunDetail, RunTrace
from ledger.words.codes import amount, resource
from ledger.words.format import count, duration
from ledger.words.text import shorten
from ledger.words.usage import known
from viewer.present.compare.links import CompareLinks
from viewer.present.compare.rows import ROWS_PER_PAGE, SHOWN, VALUE_CHARS_MAX, Row, Shown, rows_of
from viewer.present.compare.verdict import change, sentences
from viewer.present.sentence import Moment, Part
from viewer.present.trace.rows import Paging
from viewer.present.trace.verdict import TONES
from viewer.words import N_, ngettext
from viewer.words import gettext as _

QUESTION_CHARS_MAX = 160
_NAMES: dict[Shown, str] = {
    "folded": N_("Alike ones folded"),
    "differences": N_("Differences only"),
    "all": N_("Everything"),
}


@dataclass(frozen=True, slots=True)
class RunHead:
    """One of the two runs."""

    letter: str
    trace: RunTrace
    question: str
    tone: str
    href: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of both runs."""

    name: str
    a: str
    b: str
    difference: str
    """How much more the second has, with its sign; `=` where there is no difference, `–` where it cannot be told."""


@dataclass(frozen=True, slots=True)
class ComparePage:
    """The page."""

    links: CompareLinks
    runs: tuple[RunHead, RunHead]
    tone: str
    label: str
    verdict: tuple[Part | Moment, ...]
    figures: Sequence[Figure]
    differences: Sequence[Difference]
    """Of the runs as such."""
    tally: str
    rows: Sequence[Row]
    paging: Paging
    filters: Sequence[tuple[str, str, bool]]
    """Each with its name, its address, and whether it is chosen."""


def compare_page(found: Comparison, links: CompareLinks) -> ComparePage:
    """Everything for the template."""
    rows = rows_of(found.entries, links.shown)
    shown = rows[links.skipped : links.skipped + ROWS_PER_PAGE]
    return ComparePage(
        links=links,
        runs=(_head("A", found.a, links, links.a), _head("B", found.b, links, links.b)),
        tone="good" if found.is_same else "warn",
        label=_("Alike") if found.is_same else _("Different"),
        verdict=sentences(found),
        figures=list(_figures(found)),
        differences=[
            each._replace(a=shorten(each.a, VALUE_CHARS_MAX), b=shorten(each.b, VALUE_CHARS_MAX))
            for each in found.differences
        ],
        tally=tally_of(found),
        rows=shown,
        paging=_paging(len(rows), len(shown), links),
        filters=[(_(_NAMES[each]), links.showing(each), each == links.shown) for each in SHOWN],
    )


def tally_of(found: Comparison) -> str:
    """How many boundaries are alike, and how many are not."""
    return ngettext(
        "%(num)s boundary alike, %(different)s different, %(a)s only in A, %(b)s only in B",
        "%(num)s boundaries alike, %(different)s different, %(a)s only in A, %(b)s only in B",
        found.count("same"),
        different=count(found.count("different")),
        a=count(found.count("only_a")),
        b=count(found.count("only_b")),
    )


def _head(letter: str, trace: RunTrace, links: CompareLinks, keys: tuple[str, str]) -> RunHead:
    summary = trace.run.summary
    question = shorten(summary.query or "", QUESTION_CHARS_MAX) or _("The question is not kept")
    return RunHead(letter, trace, question, TONES.get(summary.status, "bad"), links.site.run(*keys))


def _figures(found: Comparison) -> Iterator[Figure]:
    elapsed = found.elapsed_us
    is_known = elapsed.a is not None and elapsed.b is not None
    difference = _signed(change(elapsed), duration) if is_known else "–"
    yield Figure(_("Time"), _lasted(elapsed.a), _lasted(elapsed.b), difference)
    a, b = found.a.run, found.b.run
    for delta in found.usage:
        is_priced = delta.name == "cost_micros"
        currencies = {run.currency for run in (a, b) if run.currency}
        name = resource(delta.name) + (f", {currencies.pop()}" if is_priced and len(currencies) == 1 else "")
        if is_priced and len(currencies) > 1:
            yield Figure(name, _cost(delta.a, a.currency), _cost(delta.b, b.currency), "–")
            continue
        difference = _signed(change(delta), partial(amount, delta.name)) if found.is_told(delta) else "–"
        yield Figure(name, _used(delta, a), _used(delta, b), difference)
    for what, of_a, of_b in (
        (_("Attempts whose tokens are unknown"), a.usage_unknown_count, b.usage_unknown_count),
        (_("Attempts whose cost is unknown"), a.cost_unknown_count, b.cost_unknown_count),
    ):
        if of_a or of_b:
            yield Figure(what, count(of_a), count(of_b), _signed(of_b - of_a, count))


def _lasted(us: int | None) -> str:
    return "–" if us is None else duration(us)


def _used(delta: Delta, run: RunDetail) -> str:
    shown = amount(delta.name, run.usage.get(delta.name, 0))
    return known(run, delta.name, shown, _("unknown"), _("none"))


def _cost(micros: int | None, currency: str | None) -> str:
    return _("none") if micros is None else f"{amount('cost_micros', micros)} {currency or ''}".rstrip()


def _signed(number: int, say: Callable[[int], str]) -> str:
    return "=" if number == 0 else f"{'+' if number > 0 else '−'}{say(abs(number))}"


def _paging(row_count: int, shown_count: int, links: CompareLinks) -> Paging:
    first = links.skipped + 1 if shown_count else 0
    last = links.skipped + shown_count
    if shown_count == row_count:
        showing = ngettext("%(num)s row", "%(num)s rows", row_count)
    else:
        part = {"first": first, "last": last}
        showing = ngettext("%(first)s–%(last)s of %(num)s row", "%(first)s–%(last)s of %(num)s rows", row_count, **part)
    earlier = links.rows_from(max(0, links.skipped - ROWS_PER_PAGE)) if links.skipped else None
    return Paging(showing, earlier, links.rows_from(last) if last < row_count else None)
