"""Addresses of the viewer's pages and endpoints, below whatever path it is served at."""

from dataclasses import dataclass
from urllib.parse import quote_plus, urlencode


@dataclass(frozen=True, slots=True)
class Site:
    """Every address begins with `root`: empty, or the sub-path that a reverse proxy serves the viewer at, `/ledger`."""

    root: str = ""

    def home(self, window: str | None = None) -> str:
        """What runs now, and what ended lately, `window` says since when."""
        return self._path("/", {"window": window})

    def overview_api(self, window: str | None = None) -> str:
        """The same as JSON."""
        return self._path("/api/diagnosis/overview", {"window": window})

    def runs_api(self, query: str = "") -> str:
        """The list of all runs as JSON, with the conditions of a page's own query string."""
        return f"{self.root}/api/diagnosis/runs{'?' + query if query else ''}"

    def sessions_api(self, query: str = "") -> str:
        """The list of all sessions as JSON, as above."""
        return f"{self.root}/api/chat/sessions{'?' + query if query else ''}"

    def static(self, name: str) -> str:
        """A file of the viewer's own."""
        return f"{self.root}/static/{name}"

    def runs(self, **query: str | int | None) -> str:
        """The runs of all sessions that a filter lets through."""
        return self._path("/runs", query)

    def runs_of(self, agent: str | None, version: str | None) -> str:
        """Those of exactly this version of an agent; None is of those that name none."""
        said = {"agent": agent, "agentVersion": version}
        query = [("without", name) if value is None else (name, value) for name, value in said.items()]
        return f"{self.root}/runs?{urlencode(query)}"

    def sessions(self, **query: str | int | None) -> str:
        """All sessions."""
        return self._path("/sessions", query)

    def guide(self) -> str:
        """Every component of these pages in every state."""
        return f"{self.root}/style"

    def theme(self) -> str:
        """Where a choice of colours is sent to."""
        return f"{self.root}/theme"

    def login(self) -> str:
        """Where a link to sign in leads to."""
        return f"{self.root}/login"

    def logout(self) -> str:
        """Where whoever signs out sends that to."""
        return f"{self.root}/logout"

    def style(self, version: str) -> str:
        """The stylesheet, under the name of its version."""
        return f"{self.root}/style.css?{version}"

    def session(self, session_id: str, **query: str | int | None) -> str:
        """A session's runs."""
        return self._path(f"/sessions/{session_id}", query)

    def run(self, session_id: str, run_id: str, **query: str | int | None) -> str:
        """One run; `query` says what of it is in view."""
        return self._path("/trace", {"sessionId": session_id, "runId": run_id, **query})

    @property
    def trace_path(self) -> str:
        """Where a form asks for a run."""
        return self._path("/trace", {})

    def feedback_form(self, session_id: str, run_id: str) -> str:
        """Takes what somebody says of the run."""
        return self._path("/trace/feedback", {"sessionId": session_id, "runId": run_id})

    def stop_form(self, session_id: str, run_id: str) -> str:
        """Takes that somebody wants the run to stop."""
        return self._path("/trace/stop", {"sessionId": session_id, "runId": run_id})

    def erase_form(self, session_id: str, run_id: str) -> str:
        """Takes that somebody wants the run's contents erased."""
        return self._path("/trace/erase", {"sessionId": session_id, "runId": run_id})

    def confirm_erasure_form(self, request_id: str) -> str:
        """Takes that a second person wants the same."""
        return f"{self.root}/audit/erasures/{request_id}"

    def trace_api(self, session_id: str, run_id: str) -> str:
        """The same run as JSON."""
        return self._path(f"/api/diagnosis/{session_id}/trace", {"runId": run_id})

    def event_api(self, session_id: str, run_id: str, seq: int) -> str:
        """One event as JSON."""
        return self._path(f"/api/diagnosis/{session_id}/runs/{run_id}/events/{seq}", {})

    def live_api(self, session_id: str, run_id: str) -> str:
        """What happens in the run from now on, as it happens."""
        return self._path(f"/api/diagnosis/{session_id}/runs/{run_id}/live", {"from": "now"})

    def compare(self, a: tuple[str, str], b: tuple[str, str] | None, **query: str | int | None) -> str:
        """Two runs side by side, each a session and a run; without the second, where it is chosen."""
        return self._path("/compare", {**_sides(a, b), **query})

    def compare_api(self, a: tuple[str, str], b: tuple[str, str], **query: str | int | None) -> str:
        """The same comparison as JSON."""
        return self._path("/api/diagnosis/compare", {**_sides(a, b), **query})

    def audit(self, **query: str | int | None) -> str:
        """What vouches for the ledger, and what was decided about it."""
        return self._path("/audit", query)

    def audit_api(self) -> str:
        """The same as JSON."""
        return f"{self.root}/api/audit"

    def verification(self) -> str:
        """What verifying the whole ledger came to; it is begun there, too."""
        return f"{self.root}/audit/verification"

    def audited_run(self, session_id: str, run_id: str) -> str:
        """What proves a run to be in the log."""
        return self._path("/audit/runs", {"sessionId": session_id, "runId": run_id})

    def receipt(self, session_id: str, run_id: str) -> str:
        """The same proof as a file."""
        return self._path("/audit/receipt", {"sessionId": session_id, "runId": run_id})

    def bundle(self, session_id: str, run_id: str, content: str | None = None) -> str:
        """The run as a file that is checked anywhere; `content` is included or withheld."""
        return self._path("/audit/bundle", {"sessionId": session_id, "runId": run_id, "content": content})

    def open_bundle(self) -> str:
        """Where such a file is looked at, within the browser."""
        return f"{self.root}/audit/open"

    def session_api(self, session_id: str) -> str:
        """A session's runs as JSON."""
        return f"{self.root}/api/chat/session/{session_id}/runs"

    def _path(self, path: str, query: dict[str, str | int | None]) -> str:
        given = "&".join(f"{name}={_quoted(value)}" for name, value in query.items() if value is not None)
        return f"{self.root}{path}{'?' + given if given else ''}"


def _quoted(value: str | int) -> str:
    """As `urlencode` has it, which takes long for what needs no quoting, such as most values of the links of a page."""
    text = str(value)
    return text if text.isalnum() and text.isascii() else quote_plus(text)


def _sides(a: tuple[str, str], b: tuple[str, str] | None) -> dict[str, str | int | None]:
    session_b, run_b = b or (None, None)
    return {"sessionA": a[0], "runA": a[1], "sessionB": session_b, "runB": run_b}
