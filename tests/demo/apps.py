"""The whole app on a real socket over a real ledger, for tests."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from demo.app import open_app
from demo.serving import serving
from demo.settings import Settings, ledger_url, offline_provider

TABLES = ("stream", "event", "chat_session", "diagnosis_run")


@dataclass(frozen=True, slots=True)
class Served:
    """An app under test: a client of it, and the file of its ledger."""

    http: httpx2.Client
    url: str
    file: Path

    def chat(self, question: str, session_id: str | None = None) -> httpx2.Response:
        body = {"question": question} if session_id is None else {"question": question, "sessionId": session_id}
        return self.http.post("/api/chat", json=body)

    def trace(self, ids: dict[str, Any]) -> Any:
        answer = self.http.get(f"/api/diagnosis/{ids['sessionId']}/trace", params={"runId": ids["runId"]})
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    def query(self, sql: str, *values: Any) -> list[Any]:
        with closing(sqlite3.connect(f"file:{self.file}?mode=ro", uri=True)) as db:
            return db.execute(sql, values).fetchall()

    def row_counts(self) -> dict[str, int]:
        """Rows of sessions and runs; who looked or was refused is recorded of the ledger itself."""
        return {table: self.query(f"SELECT count(*) FROM {table} WHERE session_id <> ''")[0][0] for table in TABLES}


@contextmanager
def app_served(folder: Path, model_url: str, **settings: Any) -> Iterator[Served]:
    """The app, asking the model at `model_url`, with everything it keeps in `folder`."""
    logs = folder / "logs"
    logs.mkdir(exist_ok=True)
    (logs / "app.log").write_text("kernel: No space left on device\n")
    opened = Settings(folder, logs, ledger_url(folder), offline_provider(model_url), **settings)
    with (
        serving("the app", lambda: open_app(opened)) as url,
        httpx2.Client(base_url=url, timeout=30, trust_env=False) as http,
    ):
        yield Served(http, url, folder / "runs.db")
