"""The form that narrows a list of runs, and what of it is set: each condition can be taken back by a link."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from ledger.lists import RunValues
from ledger.run_filter import FEEDBACKS, STATUSES
from ledger.words.codes import plain
from viewer.present.trace.verdict import pill
from viewer.words import N_
from viewer.words import gettext as _

Query = Sequence[tuple[str, str]]
"""Parameters of an address, in their order."""

NAMES = {
    "status": N_("outcome"),
    "text": N_("text"),
    "agent": N_("agent"),
    "agentVersion": N_("version"),
    "agentFlow": N_("flow"),
    "actor": N_("for"),
    "environment": N_("environment"),
    "without": N_("not said"),
    "label": N_("label"),
    "tool": N_("tool"),
    "reason": N_("reason"),
    "feedback": N_("feedback"),
    "degraded": N_("degraded"),
    "from": N_("from"),
    "to": N_("until"),
    "sessionId": N_("session"),
    "sessionPrefix": N_("sessions that begin with"),
}
"""Every condition, in the words of the page."""
_CHOICES = {
    "agent": "agents",
    "agentVersion": "agent_versions",
    "agentFlow": "flows",
    "environment": "environments",
    "actor": "actors",
    "tool": "tools",
    "reason": "reasons",
}
"""Conditions of which the newest runs offer the values."""
_UNSAID = ("agent", "agentVersion", "agentFlow", "actor", "environment")
"""Conditions that hold for runs which say nothing of the kind, too."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One value that a condition may have."""

    value: str
    name: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Field:
    """One condition of the form."""

    key: str
    name: str
    value: str
    choices: tuple[Choice, ...]
    """Empty where anything may be written."""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Chip:
    """A condition that is set."""

    name: str
    value: str
    without: str
    """The same list without it."""


@dataclass(frozen=True, slots=True)
class FilterForm:
    """All of the form."""

    statuses: tuple[Choice, ...]
    unsaid: tuple[Choice, ...]
    """What the runs say nothing of."""
    fields: tuple[Field, ...]
    chips: tuple[Chip, ...]
    clear: str
    """The list without any condition."""

    @property
    def is_open(self) -> bool:
        """Whether anything is set that the search in the page's head does not show."""
        return any(chip.name != _(NAMES["text"]) for chip in self.chips)


def filter_form(query: Query, values: RunValues, address: Callable[[str], str]) -> FilterForm:
    """The form of a list at `address`, a function of the query string. Other parameters are left out."""
    given = [(key, value) for key, value in query if key in NAMES and value]
    return FilterForm(
        statuses=tuple(Choice(each, pill(each), ("status", each) in given) for each in STATUSES),
        unsaid=tuple(Choice(each, _titled(_(NAMES[each])), ("without", each) in given) for each in _UNSAID),
        fields=(
            *(_field(key, given, getattr(values, name)) for key, name in _CHOICES.items()),
            _field("feedback", given, FEEDBACKS, name_of=plain),
            _field(
                "degraded", given, ("true", "false"), name_of={"true": _("degraded"), "false": _("not degraded")}.get
            ),
            _written("label", given, _("name=value")),
            _written("from", given, _("2026-11-30T09:00Z")),
            _written("to", given, _("the same")),
        ),
        chips=tuple(_chip(position, given, address) for position in range(len(given))),
        clear=address(""),
    )


def page_address(query: Query, address: Callable[[str], str], cursor: str | None) -> str:
    """Another page of the same list; None is its first."""
    kept = [(key, value) for key, value in query if key != "cursor" and value]
    return address(urlencode([*kept, ("cursor", cursor)] if cursor else kept))


def _field(
    key: str, given: Query, offered: Sequence[str], *, name_of: Callable[[str], str | None] = lambda value: None
) -> Field:
    value = _value(key, given)
    # What the address asks for is offered too, though no recent run has it.
    values = [*offered, *([value] if value and value not in offered else [])]
    choices = tuple(Choice(each, name_of(each) or each, each == value) for each in values)
    return Field(key, _titled(_(NAMES[key])), value, choices)


def _written(key: str, given: Query, hint: str) -> Field:
    return Field(key, _titled(_(NAMES[key])), _value(key, given), (), hint)


def _titled(name: str) -> str:
    return name[:1].upper() + name[1:]


def _named(key: str) -> str:
    return _(NAMES[key]) if key in NAMES else key


def _value(key: str, given: Query) -> str:
    return next((value for name, value in given if name == key), "")


def _chip(position: int, given: Query, address: Callable[[str], str]) -> Chip:
    key, value = given[position]
    shown = {"status": pill, "feedback": plain, "without": _named}.get(key, str)(value)
    rest = [each for place, each in enumerate(given) if place != position]
    return Chip(_(NAMES[key]), shown, address(urlencode(rest)))
