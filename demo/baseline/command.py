"""`python -m demo baseline`: ask every question, show what it came to, and say whether that is as good as it was."""

import os
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import orjson
from rich.console import Console
from rich.table import Table

from demo.baseline.comparing import BASELINE, Change, Json, drift_of, missed_goals, read_json, record
from demo.baseline.measuring import Measured, Totals, as_json, totals
from demo.baseline.running import ask_all
from demo.baseline.scenarios import Scenario, scenarios
from demo.configuration import read_configuration
from demo.errors import DemoError
from demo.launch import keep_loopback_direct, opened_offline_model
from demo.serving import serving
from demo.settings import offline_provider, provider_of
from demo.terminal import complain, give_up_unwritten, open_console
from harness import HarnessError
from ledger import LedgerError

GOAL_REACHED = 0
GOAL_MISSED = 1
UNTOLD = 2
INTERRUPTED = 130
CHANGES_SHOWN_MAX = 12
OWN_SEED = 7
"""That of the committed baseline."""


@dataclass(frozen=True, slots=True)
class Found:
    """What all questions came to, beside the goal and the committed baseline."""

    rows: Sequence[Measured]
    now: Json
    drift: Sequence[Change]
    """Where the same questions, put to the same model, come to something else than the baseline says."""

    @property
    def sums(self) -> Totals:
        return totals(self.rows)

    @property
    def missed(self) -> list[str]:
        """The goals that were not reached."""
        return list(missed_goals(self.sums))

    def as_json(self) -> Json:
        drift = [str(change) for change in self.drift]
        return {**self.now, "goal_reached": not self.missed, "missed": self.missed, "drift": drift}


def perform_baseline(argv: Sequence[str]) -> int:
    """The command: 0 if the goal is reached and no figure drifted, 1 if not, 2 if that cannot be told."""
    given = _parse(argv)
    console = open_console()
    try:
        return run_baseline(console, scenarios(given.seed), seed=given.seed, json=given.json, why=given.record)
    except (DemoError, HarnessError, LedgerError, OSError) as error:
        complain(error)
        return UNTOLD
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        give_up_unwritten()


def run_baseline(
    console: Console, chosen: Sequence[Scenario], *, seed: int, json: bool = False, why: str | None = None
) -> int:
    """Ask these questions and show what came of it; the exit code."""
    keep_loopback_direct(os.environ)
    if not json:
        console.print(f"· {len(chosen)} questions, each about a machine of its own, from seed {seed}", style="dim")
    with tempfile.TemporaryDirectory(prefix="baseline-") as folder, ExitStack() as servers:
        provider = provider_of(read_configuration({}, os.environ))
        if provider is None:
            provider = offline_provider(servers.enter_context(serving("the offline model", opened_offline_model)))
        rows = _asked(console, chosen, ask_all(chosen, provider, Path(folder)), quiet=json)
    now = as_json(seed, provider.model, rows)
    if why is not None:
        record(now, why)
    found = Found(rows, now, drift_of(read_json(BASELINE), now))
    if json:
        console.out(orjson.dumps(found.as_json(), option=orjson.OPT_INDENT_2).decode(), highlight=False)
    else:
        _show(console, found)
    return GOAL_MISSED if found.missed or found.drift else GOAL_REACHED


def _parse(argv: Sequence[str]) -> Namespace:
    parser = ArgumentParser(
        prog="python -m demo baseline",
        description="Ask the app about machines whose faults are known, and measure its answers. Exit code 0: the goal "
        "is reached, and no figure differs from the committed baseline.",
    )
    parser.add_argument("--seed", type=int, default=OWN_SEED, help="makes names, times, noise anew (%(default)s)")
    parser.add_argument("--json", action="store_true", help="everything as JSON, and nothing else")
    parser.add_argument("--record", metavar="WHY", help="make this the baseline, and write down why it changed")
    return parser.parse_args(argv)


def _asked(console: Console, chosen: Sequence[Scenario], answers: Iterator[Measured], *, quiet: bool) -> list[Measured]:
    """All rows, while one line says how far it is."""
    if quiet:
        return list(answers)
    rows: list[Measured] = []
    with console.status("starting") as status:
        for scenario in chosen:
            status.update(f"{scenario.number} of {len(chosen)}: {scenario.question}")
            rows.append(next(answers))
    return rows


def _show(console: Console, found: Found) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("", "right cause", "answer", "evidence"):
        table.add_column(title)
    for title in ("steps", "tools", "tokens"):
        table.add_column(title, justify="right")
    for row in found.rows:
        mark = "[green]✓[/]" if row.is_right else "[red]✗[/]"
        named = row.named_cause + (" (degraded)" if row.is_degraded else "")
        cited = "real" if row.is_evidence_cited else "[red]not real[/]"
        table.add_row(mark, row.right_cause, named, cited, str(row.steps), str(row.tools), f"{row.tokens:,}")
    console.print(table)
    sums, count = found.sums, found.sums.questions
    console.print(
        f"\n{sums.right} of {count} causes right, evidence real in {sums.evidence_cited}, {sums.degraded} degraded; "
        f"{sums.steps / count:.1f} steps, {sums.tools / count:.1f} tools, {sums.tokens / count:,.0f} tokens a question",
        soft_wrap=True,
    )
    for goal in found.missed:
        console.print(f"missed: {goal}", style="red")
    for change in found.drift[:CHANGES_SHOWN_MAX]:
        console.print(f"drift: {change}", style="red")
    if len(found.drift) > CHANGES_SHOWN_MAX:
        console.print(f"drift: and {len(found.drift) - CHANGES_SHOWN_MAX} more", style="red")
    if not found.missed:
        reached = "The goal is reached, but not as before." if found.drift else "The goal is reached."
        console.print(reached, style="bold")
