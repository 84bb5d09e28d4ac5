"""The nested scopes of a run, from its events: where each lies, what it was limited to, what it used (SPEC D5)."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from harness.errors import HarnessError, UnknownEvent
from harness.events import parse_event
from harness.state import OBSERVED, RunState, evolve
from ledger.records import RecordedEvent
from ledger.words.codes import amount, counted, used_of
from ledger.words.format import duration
from ledger.words.places import Place, place
from viewer.words import gettext as _


@dataclass(frozen=True, slots=True)
class Scope:
    """A scope of its own limits inside its run."""

    place: Place
    """The group that it is, in those around it."""
    seq: int
    """The event that says most about it: that it was exhausted, else that it was opened."""
    start_us: int
    end_us: int | None
    """None while it is open, and where nobody knows when it ended."""
    limits: Mapping[str, int]
    timeout_us: int | None
    usage: Mapping[str, int] | None = None
    """What was charged to it; None where that cannot be told."""
    exhausted: tuple[str, int, int] | None = None
    """The resource that ran out, with used and limit."""

    @property
    def label(self) -> str:
        """Its name, and which of that name it was if not the first: `planner`, `planner.2`."""
        return self.place[-1].label

    @property
    def words(self) -> str:
        """Its limits with what was used of them, the one that ran out first."""
        told = []
        if self.exhausted is not None:
            told.append(_("exhausted · %(used)s", used=used_of(*self.exhausted)))
        ran_out = self.exhausted[0] if self.exhausted is not None else None
        told += [self._limit(key, limit) for key, limit in self.limits.items() if key != ran_out]
        if self.timeout_us is not None and ran_out != "deadline_us":
            told.append(_("at most %(limit)s", limit=duration(self.timeout_us)))
        return " · ".join(told)

    def _limit(self, key: str, limit: int) -> str:
        resource = key.removeprefix(OBSERVED)
        words = self._enforced(resource, limit)
        return _("%(limit)s (only observed)", limit=words) if key != resource else words

    def _enforced(self, resource: str, limit: int) -> str:
        if resource == "repeated_calls":
            return _("at most %(number)s times the same call", number=limit)
        if self.usage is None or resource == "tool_default":
            return _("at most %(limit)s", limit=counted(resource, limit))
        used = amount(resource, self.usage.get(resource, 0))
        return _("%(used)s of %(limit)s", used=used, limit=counted(resource, limit))


def scopes_of(events: Sequence[RecordedEvent]) -> list[Scope]:
    """Every nested scope of the run, in the order they were opened."""
    found: dict[str, Scope] = {}
    for event in events:
        key = event.fields.get("scope_id")
        if event.type == "scope.opened":
            found[str(key)] = _opened(event)
        elif key in found and event.type == "scope.exhausted":
            figures = (str(event.fields["resource"]), int(event.fields["used"]), int(event.fields["limit"]))
            found[key] = replace(found[key], seq=event.seq, exhausted=figures)
        elif key in found and event.type == "scope.closed":
            found[key] = replace(found[key], end_us=event.elapsed_us)
        elif event.type == "run.terminated":
            found = {each: _left(scope, event.elapsed_us) for each, scope in found.items()}
    usage = _usage(events) if found else {}
    return [replace(scope, usage=usage.get(key)) for key, scope in found.items()]


def _opened(event: RecordedEvent) -> Scope:
    fields: Mapping[str, Any] = event.fields
    return Scope(
        # What lies in it has its boundary as the beginning of its path.
        place=place([unquote(segment) for segment in fields["boundary"].split("/")]),
        seq=event.seq,
        start_us=event.elapsed_us or 0,
        end_us=None,
        limits=fields["limits"],
        timeout_us=fields.get("timeout_us"),
    )


def _left(scope: Scope, at_us: int | None) -> Scope:
    return scope if scope.end_us is not None else replace(scope, end_us=at_us)


def _usage(events: Iterable[RecordedEvent]) -> Mapping[str, Mapping[str, int]]:
    """What was charged to each scope, by the one fold that reckons it; nothing of events that it does not take."""
    usage: dict[str, Mapping[str, int]] = {}
    state: RunState | None = None
    try:
        for event in events:
            with suppress(UnknownEvent):
                state = evolve(state, parse_event(dict(event.fields)))
                usage |= {key: scope.usage for key, scope in state.scopes.items()}
    except (HarnessError, ValueError):
        return {}
    return usage
