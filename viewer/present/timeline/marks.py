"""What is marked on the drawing beside its bars: breaks, the run's deadline and those of its scopes."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.words.format import duration
from viewer.present.timeline.scale import FOLD_WIDTH, Scale
from viewer.words import gettext as _

NEAR_SHARE = 1.1
"""Of the run's length; a deadline up to here is drawn, one farther off is only pointed to."""
LABEL_APART = 12.0
"""Per cent of the width between the middles of two labels of breaks."""


@dataclass(frozen=True, slots=True)
class Break:
    """An idle stretch that was folded."""

    x: float
    width: float
    idle_us: int
    from_us: int
    label: str
    """Empty where the label of another break is too near."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """When the run must have ended."""

    at_us: int
    x: float
    side: str
    """`here`, or `before` or `after` what is drawn."""


def breaks(scale: Scale) -> tuple[Break, ...]:
    """Each fold, with how long it is."""
    found: list[Break] = []
    labelled_x = -LABEL_APART
    for fold in scale.folds:
        x = round(scale.x(fold.start_us), 2)
        has_room = x - labelled_x >= LABEL_APART
        labelled_x = x if has_room else labelled_x
        label = _("%(time)s idle", time=duration(fold.length_us)) if has_room else ""
        found.append(Break(x, FOLD_WIDTH, fold.length_us, fold.start_us, label))
    return tuple(found)


def drawn_length_us(length_us: int, deadline_us: int | None) -> int:
    """How much time is drawn of a run: up to its deadline if that is near its end, but never squeezed by a far one."""
    is_near = deadline_us is not None and length_us < deadline_us <= length_us * NEAR_SHARE
    return deadline_us if is_near and deadline_us is not None else length_us


def deadline_of(scale: Scale, deadline_us: int | None) -> Deadline | None:
    """Where it lies, or on which side of the drawing."""
    if deadline_us is None:
        return None
    window = scale.window
    side = "here" if window.holds(deadline_us) else "before" if deadline_us < window.start_us else "after"
    return Deadline(deadline_us, round(scale.x(deadline_us), 2), side)


def own_deadline_x(scale: Scale, start_us: int, timeout_us: int | None) -> float | None:
    """Of a nested scope: where its deadline lies, if that is drawn."""
    if timeout_us is None or not scale.window.holds(start_us + timeout_us):
        return None
    return round(scale.x(start_us + timeout_us), 2)
