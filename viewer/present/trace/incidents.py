"""What happened in a run that a plain course does not have, in sentences."""

from collections.abc import Iterable, Iterator

from ledger.records import RunDetail
from ledger.words.codes import used_of
from ledger.words.format import count, some
from viewer.present.sentence import Part, Sentence
from viewer.present.timeline.scopes import Scope

SCOPES_NAMED_MAX = 3


def incidents(run: RunDetail, scopes: Iterable[Scope]) -> Iterator[Sentence]:
    """One sentence for each kind of incident, the gravest first."""
    hidden = run.incidents.get("hidden_retries", 0)
    if hidden:
        were = "was" if hidden == 1 else "were"
        yield [f"{some(hidden, 'hidden request').capitalize()} {were} seen beside the recorded attempts."]
    yield from _exhausted(run.incidents.get("scopes_exhausted", 0), [each for each in scopes if each.exhausted])
    denied = run.incidents.get("calls_denied", 0)
    if denied:
        yield [f"A policy denied {some(denied, 'call')}."]
    passed = run.incidents.get("limits_passed", 0)
    if passed:
        yield [f"Work was let past a limit that is only observed, {_times(passed)}."]


def _exhausted(number: int, scopes: list[Scope]) -> Iterator[Sentence]:
    """By name where the scopes are known and few."""
    if number and not 0 < len(scopes) <= SCOPES_NAMED_MAX:
        their = "its" if number == 1 else "their"
        yield [f"{some(number, 'nested scope').capitalize()} used up a limit of {their} own."]
        return
    for scope in scopes:
        assert scope.exhausted is not None, "it is exhausted"
        yield ["The scope ", Part(scope.label, code=True), f" was exhausted ({used_of(*scope.exhausted)})."]


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{count(number)} times")
