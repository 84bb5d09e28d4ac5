"""One measured figure, and how a list of them is shown and kept."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter_ns

from rich.console import Console
from rich.table import Table

PIPED_WIDTH = 132


@dataclass(frozen=True, slots=True)
class Figure:
    """A value beside its reference.

    `goal` is the highest ratio that is good enough, `at_most` the highest value; None where none is set.
    """

    name: str
    unit: str
    value: float
    reference: str
    reference_value: float
    ratio: float
    goal: float | None
    at_most: float | None
    met: bool | None


def figure(
    name: str,
    unit: str,
    value: float,
    reference: str,
    reference_value: float,
    goal: float | None = None,
    at_most: float | None = None,
) -> Figure:
    """A figure with its ratio, and whether that meets the goal and the value its bound."""
    ratio = value / reference_value
    kept = [got <= wanted for got, wanted in ((ratio, goal), (value, at_most)) if wanted is not None]
    met = all(kept) if kept else None
    return Figure(
        name, unit, round(value, 4), reference, round(reference_value, 4), round(ratio, 3), goal, at_most, met
    )


def median_ms(durations_ns: Iterable[int]) -> float:
    """The median of nanoseconds, in milliseconds."""
    return median(durations_ns) / 1e6


def timed_ns(work: Callable[[], object]) -> int:
    """How long one call takes."""
    started_ns = perf_counter_ns()
    work()
    return perf_counter_ns() - started_ns


def show(figures: list[Figure]) -> None:
    """Print the figures as a table."""
    table = Table(title="Measured beside a reference in the same run", title_justify="left")
    for heading in ("figure", "value", "reference", "value", "ratio", "goal"):
        table.add_column(heading, justify="right" if heading in ("value", "ratio", "goal") else "left")
    for row in figures:
        value, reference_value = (f"{number:.3f} {row.unit}" for number in (row.value, row.reference_value))
        table.add_row(row.name, value, row.reference, reference_value, f"{row.ratio:.2f}", _goal(row))
    Console(width=None if sys.stdout.isatty() else PIPED_WIDTH).print(table)


def _goal(row: Figure) -> str:
    ratio = [] if row.goal is None else [f"{row.goal:g}"]
    value = [] if row.at_most is None else [f"{row.at_most:g} {row.unit}"]
    return " ".join([*ratio, *value, "met" if row.met else "MISSED"]) if ratio or value else "-"


def write(figures: list[Figure], path: Path) -> None:
    """Keep the figures as a JSON list of objects."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(row) for row in figures], indent=2) + "\n")
