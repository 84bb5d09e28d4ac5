"""The main job: three requests over HTTP about this machine, then each run's exact trace, then a look at the file.

It uses only what the answers give it: the run ids of the traces come from the responses (SPEC R9, R10).
"""

from pathlib import Path
from typing import Any

from rich.console import Console

from demo.client import Asked, Client
from demo.errors import DemoError
from demo.evaluation import RULE_EVALUATION
from demo.inspection import TABLES, Inspection, inspect_session
from demo.rendering import show_inspection, show_trace

FIRST_QUESTION = "Is any disk close to full, and how much memory is left?"
SECOND_QUESTION = "And what do its logs say?"

Json = dict[str, Any]


class NotAsItShouldBe(DemoError):
    """Something that the demonstration shows does not hold."""

    code = "not_as_it_should_be"


def run_demo(console: Console, url: str, ledger_file: Path) -> None:
    """Ask, show and check; `DemoError` if anything is off."""
    with Client(url) as client:
        first = _ask(console, client, FIRST_QUESTION)
        second = _ask(console, client, SECOND_QUESTION, first.session_id)
        console.print("· asking for a check of the whole machine", style="dim")
        check = client.check_machine()
        for asked in (first, second, check):
            trace = client.trace(asked.session_id, asked.run_id)
            show_trace(console, trace, client.trace_page(asked.session_id, asked.run_id))
            check_trace(trace, asked)
        _expect(RULE_EVALUATION in (trace["selfEvaluation"] or {}), "the check was not evaluated by rules")
    inspection = inspect_session(ledger_file, first.session_id)
    show_inspection(console, inspection, {first.run_id: "first question", second.run_id: "second question"})
    check_inspection(inspection, first, second)
    console.print("\nBoth questions share one session; each run holds only its own rows.", style="green")
    console.print("To open the pages of these runs: `make serve`, then the address that it prints.", style="dim")


def check_trace(trace: Json, asked: Asked) -> None:
    """The trace is the run that was asked for, it succeeded, and its counts are those of its rows (SPEC R3, R4)."""
    run = trace["run"]
    _expect((run["sessionId"], run["runId"]) == (asked.session_id, asked.run_id), "the trace is of another run")
    _expect(run["status"] == "SUCCESS", f"the run ended {run['status']}")
    _expect(trace["answer"] == asked.answer, "the recorded answer is not the one that was given")
    _expect(run["stepCount"] == len(trace["agentSteps"]) > 0, "the number of steps is not that of the rows")
    _expect(run["toolCallCount"] == len(trace["toolInvocations"]) > 0, "the number of tools is not that of the rows")
    rows = [*trace["agentSteps"], *trace["toolInvocations"]]
    owners = {(row["sessionId"], row["runId"]) for row in rows}
    _expect(owners == {(asked.session_id, asked.run_id)}, "the trace holds rows of another run")


def check_inspection(inspection: Inspection, first: Asked, second: Asked) -> None:
    """Two runs in the one session, each with rows in every table, and none of anyone else's."""
    _expect(second.session_id == first.session_id, "the two questions are not in one session")
    _expect(set(inspection.run_ids) == {first.run_id, second.run_id}, "the session does not hold exactly its two runs")
    for row in inspection.rows:
        _expect(row.row_count > 0, f"run {row.run_id} has no rows in {row.table}")
        _expect(row.foreign_count == 0, f"run {row.run_id} holds rows of another run in {row.table}")
    _expect(len(inspection.rows) == 2 * len(TABLES), "a table was not looked at")


def _ask(console: Console, client: Client, question: str, session_id: str | None = None) -> Asked:
    console.print(f"· asking: {question}", style="dim")
    return client.chat(question, session_id)


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise NotAsItShouldBe(otherwise)
