"""A report in sections: what each counts, in plain words, and that it is nothing where it is nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ledger.audit.report import Figures, Report
from ledger.words.codes import amount, cancel, noun, plain, resource
from ledger.words.format import count

Kind = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """Something that is counted, and of which kinds it was."""

    name: str
    total: str
    kinds: tuple[tuple[str, str], ...]
    """In words, with how often."""
    is_nothing: bool


@dataclass(frozen=True, slots=True)
class Section:
    """Lines that belong together."""

    title: str
    lead: str
    lines: tuple[Line, ...]


OUTCOMES = {
    "SUCCESS": "Success",
    "FAILED": "Failed",
    "CANCELLED": "Cancelled",
    "TIMED_OUT": "Timed out",
    "BUDGET_EXHAUSTED": "Budget exhausted",
    "RUNNING": "Still open",
}


def outcomes(report: Report) -> list[Line]:
    """Every outcome that there can be, with the reasons that were given."""
    found = report.figures["outcomes"].kinds
    lines = []
    for status, name in OUTCOMES.items():
        reasons = [(reason, number) for (of, reason), number in found if of == status and number]
        told = tuple((plain(reason), count(number)) for reason, number in reasons if reason and reason != status)
        total = sum(number for _, number in reasons)
        lines.append(Line(name, count(total), told, total == 0))
    return lines


def sections(report: Report) -> list[Section]:
    """All but the outcomes, in the order in which they are printed."""
    return [
        Section(title, lead, tuple(_line(report.figures, name, what, say) for name, what, say in lines))
        for title, lead, lines in _SECTIONS
    ]


def usage(report: Report) -> list[tuple[str, str]]:
    """What the runs used in all, as far as it is known."""
    used = report.usage
    rows = [
        (resource(name), amount(name, used.get(name, 0)))
        for name in ("model_calls", "tool_calls", "input_tokens", "output_tokens", "total_tokens")
    ]
    costs = [name for name in sorted(used) if name.startswith("cost_micros:")]
    rows += [(f"Cost, {name.partition(':')[2]}", amount("cost_micros", used[name])) for name in costs]
    return [*rows, ("Model attempts of unknown usage", count(used.get("usage_unknown", 0)))]


def _line(figures: Mapping[str, Figures], name: str, what: str, say: Callable[[Kind], str]) -> Line:
    found = figures[name]
    kinds = tuple((say(kind), count(number)) for kind, number in found.kinds)
    return Line(what, count(found.total), kinds, found.total == 0)


def _words(kind: Kind) -> str:
    return " · ".join(plain(part) for part in kind if part) or "not named"


def _as_is(kind: Kind) -> str:
    return " · ".join(part for part in kind if part) or "not named"


def _resource(kind: Kind) -> str:
    return " · ".join([noun(kind[0]) if kind[0] else "not told", *(f"of a {part}" for part in kind[1:] if part)])


def _asked(kind: Kind) -> str:
    reason, actor = kind
    return f"{cancel(reason)} · by {actor or 'somebody who was not named'}"


def _denied(kind: Kind) -> str:
    name, policy, reason = kind
    return f"{name} · by {policy} · {plain(reason)}"


def _erased(kind: Kind) -> str:
    scope, reason, actor = kind
    return f"{plain(scope)} · {plain(reason)} · by {actor or 'somebody who was not named'}"


def _access(kind: Kind) -> str:
    action, allowed, actor = kind
    return f"{plain(action)} · {plain(allowed)} · by {actor or 'somebody who was not named'}"


_SECTIONS: Sequence[tuple[str, str, Sequence[tuple[str, str, Callable[[Kind], str]]]]] = (
    (
        "Limits and refusals",
        "Where a limit was reached, and where work was not let through.",
        (
            ("limits_that_ended_runs", "Runs ended by a limit", _resource),
            ("work_refused", "Work refused by a limit", _resource),
            ("scopes_exhausted", "Nested scopes exhausted", _resource),
            ("limits_passed", "Limits passed that are only observed", _resource),
            ("calls_denied", "Calls denied by a policy", _denied),
            ("retries_refused", "Retries refused", _words),
        ),
    ),
    (
        "Cancellations",
        "Anyone may ask that a run stop; its owner signals it, for the first reason.",
        (
            ("cancellations_asked_for", "Asked for", _asked),
            ("cancellations_signalled", "Signalled", lambda kind: cancel(kind[0])),
        ),
    ),
    (
        "Irregularities",
        "What a plain course does not have.",
        (
            ("hidden_retries", "Hidden retries: requests beside the recorded attempts", _as_is),
            ("degraded_runs", "Degraded answers", _as_is),
            ("recovered_runs", "Runs ended by recovery, since their process had died", _words),
        ),
    ),
    (
        "Erasure",
        "Contents erased from the runs of this report, whenever that was; and what was decided in the period.",
        (
            ("contents_erased", "Contents erased from these runs", _erased),
            ("erasures_decided", "Erasures decided in the period", _erased),
            ("erasures_finished", "Erasures finished in the period", _words),
        ),
    ),
    (
        "Access and administration",
        "From the ledger's own stream, in the period, whichever runs it was about.",
        (
            ("accesses", "Accesses on record", _access),
            ("decisions_about_the_ledger", "Keys, tokens and restores", _as_is),
        ),
    ),
)


def shares(report: Report) -> Iterator[tuple[str, str, bool]]:
    """The figures at the head of a report: name, number, and whether it is worth a second look."""
    totals = {name: figures.total for name, figures in report.figures.items()}
    ended_well = sum(number for kind, number in report.figures["outcomes"].kinds if kind[0] == "SUCCESS")
    yield "Runs", count(report.run_count), False
    yield "Success", count(ended_well), False
    yield "Other outcomes", count(report.run_count - report.open_count - ended_well), False
    yield "Still open", count(report.open_count), report.open_count > 0
    for name, label in (
        ("limits_that_ended_runs", "Ended by a limit"),
        ("cancellations_signalled", "Cancellations"),
        ("hidden_retries", "Hidden retries"),
        ("degraded_runs", "Degraded"),
        ("recovered_runs", "Recovered"),
        ("contents_erased", "Contents erased"),
    ):
        yield label, count(totals[name]), totals[name] > 0
