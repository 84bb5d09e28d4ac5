"""How much of each limit was used at every moment of a run: from its events, or of a long run from its lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from harness.errors import HarnessError, UnknownEvent
from harness.events import parse_event
from harness.state import RunState, advance, begin, reserved_in
from ledger.reading.parts import WorkLine
from ledger.records import RecordedEvent

LEVELS_MAX = 1_000
"""Of a long run; more than can be told apart in a drawing."""
TOKENS = ("input_tokens", "output_tokens", "total_tokens")


@dataclass(frozen=True, slots=True)
class Level:
    """What was charged from a moment on."""

    at_us: int
    used: int
    reserved: int = 0
    """The part of `used` that is an estimate, to be settled."""
    unknown_count: int = 0
    """Attempts whose usage nobody knew by then; it is not in `used`."""


_NOTHING = Level(0, 0)

Levels = Mapping[str, Sequence[Level]]
"""By resource, each in the order of time; a resource that was never charged has none."""


@dataclass(slots=True)
class _Course:
    """The levels so far."""

    levels: dict[str, list[Level]] = field(default_factory=dict)

    def reach(self, key: str, at_us: int, used: int, reserved: int, unknown_count: int) -> None:
        """A level that differs from the one before; of one moment only the last counts."""
        course = self.levels.setdefault(key, [])
        last = course[-1] if course else _NOTHING
        if last.used == used and last.reserved == reserved and last.unknown_count == unknown_count:
            return
        if course and last.at_us == at_us:
            course.pop()
        course.append(Level(at_us, used, reserved, unknown_count))


def consumption(events: Iterable[RecordedEvent]) -> Levels:
    """From every event, by the one fold that reckons usage; empty for events that it does not take."""
    course = _Course()
    state: RunState | None = None
    at_us = 0
    try:
        for recorded in events:
            at_us = max(at_us, recorded.elapsed_us or 0)
            with suppress(UnknownEvent):
                event = parse_event(dict(recorded.fields))
                if state is None:
                    state = begin(event)
                else:
                    advance(state, event)
                _take(course, state, at_us)
    except (HarnessError, ValueError):
        return {}
    return course.levels


def _take(course: _Course, state: RunState, at_us: int) -> None:
    reserved = reserved_in(state)
    keys = {*state.usage, *(TOKENS if state.usage_unknown_count else ())}
    keys |= {"cost_micros"} if state.cost_unknown_count else set()
    for key in keys:
        unknown = (
            state.usage_unknown_count if key in TOKENS else state.cost_unknown_count if key == "cost_micros" else 0
        )
        course.reach(key, at_us, state.usage.get(key, 0), reserved.get(key, 0), unknown)


def consumption_of_works(works: Iterable[WorkLine]) -> Levels:
    """Of a run too long to read all its events: its calls alone, each as its step or invocation began."""
    times: dict[str, list[int]] = {}
    for work in works:
        for key in ("model_calls",) if work.kind == "model" else ("tool_calls", f"tool:{work.name}"):
            times.setdefault(key, []).append(work.started_elapsed_us)
    return {key: _counted(sorted(each)) for key, each in times.items()}


def _counted(times: Sequence[int]) -> list[Level]:
    """One more at each time; of very many, every so manieth and the last."""
    apart = -(-len(times) // LEVELS_MAX)
    return [Level(times[number - 1], number) for number in sorted({*range(1, len(times) + 1, apart), len(times)})]
