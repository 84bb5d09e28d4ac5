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
        return self._path("", at=seq, event=None, after=0, steps=0, tools=0)

    def seeking(self, what: Seek) -> str:
        """The next event of a kind, looked for from the one that is shown."""
        return self._path("", event=None, after=0, steps=0, tools=0, seek=what)

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
        return self._path("events", family=None, failures=0, q="", after=0, view="events")

    def viewing(self, view: View) -> str:
        """The same page with another list."""
        return self._path("lists", view=view)

    def event_at(self, seq: int) -> str:
        """The same page with event `seq` shown in full."""
        return self._path(f"e{seq}", event=seq, view="events")

    def found(self, seq: int, page_size: int) -> str:
        """The page of the event list that holds `seq`."""
        after = (seq - 1) // page_size * page_size
        return self._path(f"e{seq}", family=None, failures=0, q="", after=after, event=seq, view="events")

    def events_after(self, seq: int) -> str:
        """Another page of the event list."""
        return self._path("events", after=seq, view="events")

    def steps_from(self, skipped: int) -> str:
        """Another page of the steps."""
        return self._path("steps", steps=skipped, view="steps")

    def tools_from(self, skipped: int) -> str:
        """Another page of the tools."""
        return self._path("tools", tools=skipped, view="tools")

    def entries_from(self, skipped: int) -> str:
        """Another page of the transcript."""
        return self._path("transcript", entries=skipped, content=None, offset=0, view="transcript")

    def works_from(self, steps: int, tools: int) -> str:
        """Another page of the transcript of a long run, by how many steps and tool calls are before it."""
        return self._path("transcript", steps=steps, tools=tools, content=None, offset=0, view="transcript")

    def within(self, view: View) -> "TraceLinks":
        """The same state, staying with that list."""
        return replace(self, view=view)

    def content_from(self, key: str, offset: int) -> str:
        """The same page with another window of a content."""
        return self._path(key, content=key, offset=offset)

    def zoomed(self, t0: int, t1: int) -> str:
        """The same page with the timeline of that stretch of the run."""
        return self._path("timeline", t0=t0, t1=t1)

    @property
    def zoomed_out(self) -> str:
        """The same page with the timeline of the whole run."""
        return self._path("timeline", t0=None, t1=None)

    def with_idle(self, idle: Idle | None) -> str:
        """The same page with idle stretches of the timeline in full (`shown`) or folded (None)."""
        return self._path("timeline", idle=idle)

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

    def _path(self, anchor: str, **changed: str | int | None) -> str:
        """This state but for what is `changed`, by the address's own names; what goes without saying is left out."""
        state: dict[str, str | int | None] = {
            "after": self.after,
            "event": self.event,
            "at": self.at,
            "seek": self.seek,
            "family": self.family,
            "failures": int(self.failures),
            "q": self.text,
            "steps": self.steps,
            "tools": self.tools,
            "entries": self.entries,
            "content": self.content,
            "offset": self.offset,
            "view": self.view,
            "t0": self.t0,
            "t1": self.t1,
            "idle": self.idle,
            **changed,
        }
        said = {name: value for name, value in state.items() if value or (value == 0 and name in _SAID_AT_ZERO)}
        path = self.site.run(self.session_id, self.run_id, **said)
        return f"{path}#{anchor}" if anchor else path


_SAID_AT_ZERO = ("event", "at", "t0", "t1")
"""Of these zero is something else than nothing."""
