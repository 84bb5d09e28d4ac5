"""What a re-execution came to: the same, or the first divergence with both of its sides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from harness.events import Event
from harness.replay.record import boundary_of

TEXT_CHARS_SHOWN = 400
"""Of a content, on either side, when a divergence is told as text."""


class Verdict(Enum):
    """What is known of the code and the record."""

    SAME = "same"
    DIFFERENT = "different"
    CANNOT = "cannot re-execute"


class Kind(Enum):
    """What a divergence is."""

    MISSING = "boundary missing"
    """The record has it, and the code does not come to it."""
    EXTRA = "extra boundary"
    """The code comes to it, and the record does not have it."""
    BEGINNING = "different beginning"
    ARGUMENTS = "different arguments"
    TRANSITION = "different transition"
    ANSWER = "different answer"
    OUTCOME = "different outcome"
    EVENT = "different event"


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that is not the same on both sides; for a content, its text as far as it is known."""

    name: str
    recorded: Any
    crossed: Any


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where the code first did something else than the record says."""

    kind: Kind
    seq: int
    """Of the recorded side; where that is None, of the event that was due."""
    recorded: Event | None
    """What the record has; at an extra boundary, what was due instead. None where nothing was."""
    crossed: Event | None
    """What the code did; None where it did nothing, or was not let through."""
    differences: tuple[Difference, ...] = ()
    waiting: tuple[str, ...] = ()
    """Boundaries that the code had come to, and was waiting at."""
    ended: str | None = None
    """How the code ended, where it had."""

    def __str__(self) -> str:
        lines = [f"{self.kind.value} at {self._place()}"]
        if self.kind in (Kind.MISSING, Kind.EXTRA):
            lines += [f"  recorded: {_named(self.recorded, self.seq)}", f"  crossed:  {self._instead()}"]
        for each in self.differences:
            lines.append(f"  {each.name}")
            lines += [f"    recorded: {_shown(each.recorded)}", f"    crossed:  {_shown(each.crossed)}"]
        return "\n".join(lines)

    def _place(self) -> str:
        if self.kind is Kind.EXTRA:
            return boundary_of(self.crossed) if self.crossed is not None else self.waiting[0]
        shown = self.recorded or self.crossed
        return f"event {self.seq}, {(boundary_of(shown) or shown.type) if shown is not None else 'the beginning'}"

    def _instead(self) -> str:
        if self.crossed is not None:
            return _named(self.crossed, None)
        if self.waiting:
            return f"{', '.join(self.waiting)}, not let through"
        return "nothing more" if self.ended is None else f"nothing more; the code has ended: {self.ended}"


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why the code cannot be executed any further: the record does not have what it was given there."""

    seq: int
    boundary: str
    problem: str

    def __str__(self) -> str:
        return f"cannot re-execute from event {self.seq}, {self.boundary}: {self.problem}"


@dataclass(frozen=True, slots=True)
class Reexecution:
    """The verdict, and what it rests on."""

    run_id: str
    divergence: Divergence | None
    unavailable: Unavailable | None
    event_count: int
    """Events on record."""
    crossed_count: int
    """Those that the code crossed again, and that were compared."""
    inside_count: int
    """Those that lie inside operations, which were not called: they were taken over from the record."""
    others_count: int
    """Those that others recorded of the run, such as a request to cancel it."""
    uncompared: tuple[str, ...]
    """Boundaries whose arguments cannot be compared, since their content is erased or not on record."""
    ambiguous: tuple[str, ...]
    """Boundaries that only the order of the calls tells from others (SPEC D7)."""
    is_cut: bool
    """Whether the record ends before the run did: same then means, as far as it goes."""
    result: Any = field(default=None, repr=False)
    """What the agent's function returned."""
    error: BaseException | None = None
    """What it raised."""

    @property
    def verdict(self) -> Verdict:
        if self.divergence is not None:
            return Verdict.DIFFERENT
        return Verdict.SAME if self.unavailable is None else Verdict.CANNOT

    @property
    def is_same(self) -> bool:
        return self.verdict is Verdict.SAME

    def __str__(self) -> str:
        """The verdict, the divergence if there is one, and what the verdict does not cover; several lines."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterable[str]:
        if self.divergence is not None:
            yield str(self.divergence)
        elif self.unavailable is not None:
            yield str(self.unavailable)
        else:
            yield "same, as far as the record goes: it ends before the run did" if self.is_cut else "same"
        parts = [f"{self.crossed_count} of {self.event_count} events crossed again"]
        parts += [f"{self.inside_count} inside operations taken over"] if self.inside_count else []
        parts += [f"{self.others_count} recorded by others"] if self.others_count else []
        yield ", ".join(parts)
        if self.uncompared:
            yield f"arguments cannot be compared at {', '.join(self.uncompared)}"
        if self.ambiguous:
            yield f"ambiguous: only the order of the calls tells apart {', '.join(self.ambiguous)}"


def _named(event: Event | None, seq: int | None) -> str:
    if event is None:
        return "nothing more"
    place = " ".join(part for part in (event.type, boundary_of(event)) if part)
    return place if seq is None else f"{place} (event {seq})"


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    text = value if isinstance(value, str) else str(value)
    line = text.encode("unicode_escape").decode("ascii") if not text.isprintable() else text
    return line if len(line) <= TEXT_CHARS_SHOWN else f"{line[: TEXT_CHARS_SHOWN - 1]}…"
