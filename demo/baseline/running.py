"""The questions, asked for real: the app over HTTP, its model over HTTP, its tools over each machine's files."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from demo.app import open_app
from demo.baseline.measuring import Measured, measure
from demo.baseline.scenarios import Scenario
from demo.client import Client
from demo.serving import serving
from demo.settings import Provider, Settings, ledger_url


def ask_all(chosen: Sequence[Scenario], provider: Provider, folder: Path) -> Iterator[Measured]:
    """One row for each scenario, as soon as it is answered; all runs are in one ledger in the folder.

    The app is opened anew for each: it may see one machine's files, and nothing that says what is wrong with it.
    """
    for scenario in chosen:
        place = folder / f"machine-{scenario.number:02}"
        logs, snapshot = place / "logs", place / "figures.json"
        logs.mkdir(parents=True)
        scenario.machine.write(logs, snapshot)
        yield _ask(scenario, Settings(folder, logs, ledger_url(folder), provider, metrics_snapshot=snapshot))


def _ask(scenario: Scenario, settings: Settings) -> Measured:
    with serving("the app", lambda: open_app(settings)) as url, Client(url) as client:
        asked = client.chat(scenario.question)
        trace = client.trace(asked.session_id, asked.run_id)
    return measure(scenario, asked.answer, trace)
