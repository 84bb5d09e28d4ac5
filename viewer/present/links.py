"""Addresses of the states of a trace page: the whole state of a page is in its address."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from viewer.site import Site

View = Literal["transcript", "steps", "tools", "events"]
"""The lists of a trace page, of which it shows one."""
VIEWS: tuple[View, ...] = get_args(View)
Seek = Literal["failure", "failure-before", "kind", "kind-before"]
"""What can be looked for from the event that is shown: where something went wrong; a boundary of the same kind."""
SEEKS: tuple[Seek, ...] = get_args(Seek)
Idle = Literal["shown"]
IDLES: tuple[Idle, ...] = get_args(Idle)


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
    entries: int = 0
    """How many entries of the transcript are skipped."""
    content: str | None = None
    """The content shown from byte `offset`."""
    offset: int = 0
    at: int | None = None
    """The event at which the run is shown, as it was then; None shows it as it is now."""
    family: str | None = None
    """Of the events only those whose type begins so."""
    failures: bool = False
    """Of the events only those in which something went wrong."""
    text: str = ""
    """Of the events only those that say this, or name a content that does."""
    view: View | None = None
    """The list that is shown; None leaves the choice to what else the address asks for."""
    seek: Seek | None = None
    """What to look for instead of showing the page."""
    t0: int | None = None
    t1: int | None = None
    """The stretch of the run that the timeline shows, in microseconds since its start; None where it is not cut."""
    idle: Idle | None = None
    """`shown` where the timeline does not fold idle stretches."""
    site: Site = field(default_factory=Site)

    @property
    def shown(self) -> View:
        """The list that is shown."""
        if self.view is not None:
            return self.view
        if self.event is not None or self.at is not None or self.after or self.is_filtered:
            return "events"
        asked_for = self.content or ""
        if self.steps or asked_for.startswith("step-"):
            return "steps"
        return "tools" if self.tools or asked_for.startswith("tool-") else "transcript"

    def replaying(self, seq: int | None) -> str:
        """The run as it was just after event `seq`; as it is now for None."""
        return replace(self, at=seq, event=None, after=0, steps=0, tools=0)._path("")

    def seeking(self, what: Seek) -> str:
        """The next event of a kind, looked for from the one that is shown."""
        return replace(self, event=None, after=0, steps=0, tools=0, seek=what)._path("")

    @property
    def replay_state(self) -> Mapping[str, str | int]:
        """What a form that asks for another event carries along."""
        state: dict[str, str | int | None] = {
            "sessionId": self.session_id,
            "runId": self.run_id,
            "view": self.view,
            "content": self.content,
            "t0": self.t0,
            "t1": self.t1,
            "idle": self.idle,
            "family": self.family,
            "failures": 1 if self.failures else None,
            "q": self.text or None,
        }
        return {name: value for name, value in state.items() if value is not None}

    @property
    def filter_state(self) -> Mapping[str, str | int]:
        """What a form that asks for other events of the list carries along."""
        state = {"sessionId": self.session_id, "runId": self.run_id, "view": "events", "at": self.at}
        return {name: value for name, value in state.items() if value is not None}

    @property
    def is_filtered(self) -> bool:
        """Whether only some of the events are listed."""
        return bool(self.family or self.failures or self.text)

    def unfiltered(self) -> str:
        """All events."""
        return replace(self, family=None, failures=False, text="", after=0, view="events")._path("events")

    def viewing(self, view: View) -> str:
        """The same page with another list."""
        return replace(self, view=view)._path("lists")

    def event_at(self, seq: int) -> str:
        """The same page with event `seq` shown in full."""
        return replace(self, event=seq, view="events")._path(f"e{seq}")

    def found(self, seq: int, page_size: int) -> str:
        """The page of the event list that holds `seq`."""
        plain = replace(self, family=None, failures=False, text="")
        return replace(plain, after=(seq - 1) // page_size * page_size, event=seq, view="events")._path(f"e{seq}")

    def events_after(self, seq: int) -> str:
        """Another page of the event list."""
        return replace(self, after=seq, view="events")._path("events")

    def steps_from(self, skipped: int) -> str:
        """Another page of the steps."""
        return replace(self, steps=skipped, view="steps")._path("steps")

    def tools_from(self, skipped: int) -> str:
        """Another page of the tools."""
        return replace(self, tools=skipped, view="tools")._path("tools")

    def entries_from(self, skipped: int) -> str:
        """Another page of the transcript."""
        return replace(self, entries=skipped, content=None, offset=0, view="transcript")._path("transcript")

    def works_from(self, steps: int, tools: int) -> str:
        """Another page of the transcript of a long run, by how many steps and tool calls are before it."""
        return replace(self, steps=steps, tools=tools, content=None, offset=0, view="transcript")._path("transcript")

    def within(self, view: View) -> "TraceLinks":
        """The same state, staying with that list."""
        return replace(self, view=view)

    def content_from(self, key: str, offset: int) -> str:
        """The same page with another window of a content."""
        return replace(self, content=key, offset=offset)._path(key)

    def zoomed(self, t0: int, t1: int) -> str:
        """The same page with the timeline of that stretch of the run."""
        return replace(self, t0=t0, t1=t1)._path("timeline")

    @property
    def zoomed_out(self) -> str:
        """The same page with the timeline of the whole run."""
        return replace(self, t0=None, t1=None)._path("timeline")

    def with_idle(self, idle: Idle | None) -> str:
        """The same page with idle stretches of the timeline in full (`shown`) or folded (None)."""
        return replace(self, idle=idle)._path("timeline")

    @property
    def verifying(self) -> str:
        """The same page, with the run checked now."""
        return self._path("proof", verify=1)

    @property
    def api(self) -> str:
        """The run as JSON."""
        return self.site.trace_api(self.session_id, self.run_id)

    def event_api(self, seq: int) -> str:
        """One event as JSON."""
        return self.site.event_api(self.session_id, self.run_id, seq)

    @property
    def live(self) -> str:
        """What happens from now on."""
        return self.site.live_api(self.session_id, self.run_id)

    def _path(self, anchor: str, **more: int) -> str:
        state: dict[str, str | int | None] = {
            "after": self.after or None,
            "event": self.event,
            "at": self.at,
            "seek": self.seek,
            "family": self.family,
            "failures": 1 if self.failures else None,
            "q": self.text or None,
            "steps": self.steps or None,
            "tools": self.tools or None,
            "entries": self.entries or None,
            "content": self.content,
            "offset": self.offset or None,
            "view": self.view,
            "t0": self.t0,
            "t1": self.t1,
            "idle": self.idle,
            **more,
        }
        path = self.site.run(self.session_id, self.run_id, **state)
        return f"{path}#{anchor}" if anchor else path
