"""Addresses of the viewer's pages and endpoints, below whatever path it is served at."""

from dataclasses import dataclass
from urllib.parse import urlencode


@dataclass(frozen=True, slots=True)
class Site:
    """Every address begins with `root`: empty, or the sub-path that a reverse proxy serves the viewer at, `/ledger`."""

    root: str = ""

    def home(self) -> str:
        """What runs now, and what ended lately."""
        return f"{self.root}/"

    def static(self, name: str) -> str:
        """A file of the viewer's own."""
        return f"{self.root}/static/{name}"

    def session(self, session_id: str, **query: str | int | None) -> str:
        """A session's runs."""
        return self._path(f"/sessions/{session_id}", query)

    def run(self, session_id: str, run_id: str, **query: str | int | None) -> str:
        """One run; `query` says what of it is in view."""
        return self._path("/trace", {"sessionId": session_id, "runId": run_id, **query})

    def trace_api(self, session_id: str, run_id: str) -> str:
        """The same run as JSON."""
        return self._path(f"/api/diagnosis/{session_id}/trace", {"runId": run_id})

    def live_api(self, session_id: str, run_id: str) -> str:
        """What happens in the run from now on, as it happens."""
        return self._path(f"/api/diagnosis/{session_id}/runs/{run_id}/live", {"from": "now"})

    def session_api(self, session_id: str) -> str:
        """A session's runs as JSON."""
        return f"{self.root}/api/chat/session/{session_id}/runs"

    def _path(self, path: str, query: dict[str, str | int | None]) -> str:
        given = {name: value for name, value in query.items() if value is not None}
        return f"{self.root}{path}{'?' + urlencode(given) if given else ''}"
