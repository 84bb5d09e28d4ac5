"""What happened in a run that a plain course does not have, in sentences."""

from collections.abc import Iterable, Iterator

from ledger.records import RunDetail
from ledger.words.codes import used_of
from ledger.words.format import spelled
from viewer.present.sentence import Part, Sentence, sentence
from viewer.present.timeline.scopes import Scope
from viewer.words import found_for, ngettext
from viewer.words import gettext as _

SCOPES_NAMED_MAX = 3


def incidents(run: RunDetail, scopes: Iterable[Scope]) -> Iterator[Sentence]:
    """One sentence for each kind of incident, the gravest first."""
    hidden = run.incidents.get("hidden_retries", 0)
    if hidden:
        seen = found_for(
            "%(num)s hidden request was seen beside the recorded attempts.",
            "%(num)s hidden requests were seen beside the recorded attempts.",
            hidden,
        )
        yield sentence(seen, num=spelled(hidden).capitalize())
    yield from _exhausted(run.incidents.get("scopes_exhausted", 0), [each for each in scopes if each.exhausted])
    denied = run.incidents.get("calls_denied", 0)
    if denied:
        yield [ngettext("A policy denied %(num)s call.", "A policy denied %(num)s calls.", denied, num=spelled(denied))]
    passed = run.incidents.get("limits_passed", 0)
    if passed:
        said = ngettext(
            "Work was let past a limit that is only observed, once.",
            "Work was let past a limit that is only observed, %(num)s times.",
            passed,
        )
        twice = _("Work was let past a limit that is only observed, twice.")
        yield [twice if passed == 2 else said]


def _exhausted(number: int, scopes: list[Scope]) -> Iterator[Sentence]:
    """By name where the scopes are known and few."""
    if number and not 0 < len(scopes) <= SCOPES_NAMED_MAX:
        used_up = found_for(
            "%(num)s nested scope used up a limit of its own.",
            "%(num)s nested scopes used up a limit of their own.",
            number,
        )
        yield sentence(used_up, num=spelled(number).capitalize())
        return
    for scope in scopes:
        assert scope.exhausted is not None, "it is exhausted"
        said = _("The scope %(name)s was exhausted (%(used)s).")
        yield sentence(said, name=Part(scope.label, code=True), used=used_of(*scope.exhausted))
