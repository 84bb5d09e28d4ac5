"""Addresses of pages: the whole state of a page is in its address."""

from dataclasses import dataclass, replace
from urllib.parse import urlencode


def session_path(session_id: str, cursor: str | None = None) -> str:
    """The page of a session's runs."""
    return f"/sessions/{session_id}{'?' + urlencode({'cursor': cursor}) if cursor else ''}"


def run_path(session_id: str, run_id: str) -> str:
    """The page of one run."""
    return f"/trace?{urlencode({'sessionId': session_id, 'runId': run_id})}"


def trace_api_path(session_id: str, run_id: str) -> str:
    """The same run as JSON."""
    return f"/api/diagnosis/{session_id}/trace?{urlencode({'runId': run_id})}"


def live_api_path(session_id: str, run_id: str) -> str:
    """What happens in the run from now on, as it happens."""
    return f"/api/diagnosis/{session_id}/runs/{run_id}/live?from=now"


@dataclass(frozen=True, slots=True)
class TraceLinks:
    """The state of a trace page; each method is the address of a neighbouring state."""

    session_id: str
    run_id: str
    after: int = 0
    """Events after this one are listed."""
    event: int | None = None
    """The event shown in full; None leaves the choice to the page."""
    steps: int = 0
    tools: int = 0
    """How many rows of the list are skipped."""
    content: str | None = None
    """The content shown from byte `offset`."""
    offset: int = 0

    def event_at(self, seq: int) -> str:
        """The same page with event `seq` shown in full."""
        return replace(self, event=seq)._path(f"e{seq}")

    def found(self, seq: int, page_size: int) -> str:
        """The page of the event list that holds `seq`."""
        return replace(self, after=(seq - 1) // page_size * page_size, event=seq)._path(f"e{seq}")

    def events_after(self, seq: int) -> str:
        """Another page of the event list."""
        return replace(self, after=seq)._path("events")

    def steps_from(self, skipped: int) -> str:
        """Another page of the steps."""
        return replace(self, steps=skipped)._path("steps")

    def tools_from(self, skipped: int) -> str:
        """Another page of the tools."""
        return replace(self, tools=skipped)._path("tools")

    def content_from(self, key: str, offset: int) -> str:
        """The same page with another window of a content."""
        return replace(self, content=key, offset=offset)._path(key)

    @property
    def api(self) -> str:
        """The run as JSON."""
        return trace_api_path(self.session_id, self.run_id)

    @property
    def live(self) -> str:
        """What happens from now on."""
        return live_api_path(self.session_id, self.run_id)

    def _path(self, anchor: str) -> str:
        state = {
            "after": self.after or None,
            "event": self.event,
            "steps": self.steps or None,
            "tools": self.tools or None,
            "content": self.content,
            "offset": self.offset or None,
        }
        query = urlencode({name: value for name, value in state.items() if value is not None})
        return f"{run_path(self.session_id, self.run_id)}{'&' + query if query else ''}#{anchor}"
