"""What a page's address asks for and the run does not have: said in words, so that nobody takes another part for it."""

from collections.abc import Iterator

from ledger.records import AgentStep, ContentView, ToolInvocation
from ledger.words.format import count
from viewer.present.links import Seek, TraceLinks
from viewer.reading.run import RunReading
from viewer.reading.seeking import SEEK_EVENTS_MAX, Sought
from viewer.words import N_, ngettext
from viewer.words import gettext as _


def notices(reading: RunReading, links: TraceLinks, entry_count: int) -> tuple[str, ...]:
    """One sentence for each part of the address that leads nowhere; `entry_count` is that of the transcript."""
    return tuple(_notices(reading, links, entry_count))


def _notices(reading: RunReading, links: TraceLinks, entry_count: int) -> Iterator[str]:
    trace, event_count = reading.trace, reading.trace.run.event_count
    if reading.lost:
        at = count(links.at or 0)
        yield _("The run is shown as it is now, and not at event %(seq)s: %(why)s.", seq=at, why=reading.lost)
    if links.event is not None and reading.selected is None:
        yield ngettext(
            "There is no event %(seq)s: the run has %(num)s event.",
            "There is no event %(seq)s: the run has %(num)s events.",
            event_count,
            seq=count(links.event),
        )
    no_event = N_("There is no event after number %(number)s: the run has %(total)s.")
    no_step = N_("There is no model step after number %(number)s: the run has %(total)s.")
    no_call = N_("There is no tool call after number %(number)s: the run has %(total)s.")
    for said, skipped, total in (
        (no_event, links.after, event_count),
        (no_step, links.steps, trace.run.summary.step_count),
        (no_call, links.tools, trace.run.summary.tool_call_count),
    ):
        if skipped and skipped >= total:
            yield _(said, number=count(skipped), total=count(total))
    if links.entries and links.entries >= entry_count:
        yield _(
            "There is no entry after number %(number)s: the transcript has %(total)s.",
            number=count(links.entries),
            total=count(entry_count),
        )
    if links.content is not None:
        found = content_named(reading, links.content)
        if found is None and not _is_elsewhere(reading, links.content):
            yield _("The run has no content %(name)s.", name=links.content)
        elif found is not None and links.offset and links.offset >= found.size_bytes:
            yield ngettext(
                "The content %(name)s has %(num)s byte, and none behind byte %(offset)s.",
                "The content %(name)s has %(num)s bytes, and none behind byte %(offset)s.",
                found.size_bytes,
                name=links.content,
                offset=count(links.offset),
            )


def not_found(what: Seek, at: int | None, sought: Sought) -> str:
    """That the event which was looked for is not there, or not within what was looked at."""
    place = _("event %(seq)s", seq=count(at)) if at else _("its end")
    number = count(SEEK_EVENTS_MAX)
    messages = _NONE_AT_ALL if sought.is_all else _NONE_SO_FAR
    return _(messages[what], place=place, number=number)


_NONE_AT_ALL: dict[Seek, str] = {
    "failure": N_("There is no failure after %(place)s."),
    "failure-before": N_("There is no failure before %(place)s."),
    "kind": N_("There is no boundary of the same kind after %(place)s."),
    "kind-before": N_("There is no boundary of the same kind before %(place)s."),
}
_NONE_SO_FAR: dict[Seek, str] = {
    "failure": N_("There is no failure among the %(number)s events after %(place)s; looking goes on from here."),
    "failure-before": N_(
        "There is no failure among the %(number)s events before %(place)s; looking goes on from here."
    ),
    "kind": N_(
        "There is no boundary of the same kind among the %(number)s events after %(place)s; looking goes on from here."
    ),
    "kind-before": N_(
        "There is no boundary of the same kind among the %(number)s events before %(place)s; looking goes on from here."
    ),
}


def _is_elsewhere(reading: RunReading, key: str) -> bool:
    """Whether the content is of a step or an invocation of a long run that this page does not show."""
    kind, _, rest = key.partition("-")
    if reading.complete or kind not in ("step", "tool"):
        return False
    summary = reading.trace.run.summary
    return 1 <= int(rest.partition("-")[0]) <= (summary.step_count if kind == "step" else summary.tool_call_count)


def content_named(reading: RunReading, key: str) -> ContentView | None:
    """The content that a key such as `answer`, `tool-3-output` or `event-input` stands for."""
    trace = reading.trace
    if key == "answer":
        return trace.answer
    if key.startswith("event-"):
        return reading.named.get(key.removeprefix("event-"))
    kind, number, part = key.split("-")
    steps: dict[int, AgentStep | ToolInvocation] = {step.step_no: step for step in trace.agent_steps}
    tools: dict[int, AgentStep | ToolInvocation] = {tool.invocation_no: tool for tool in trace.tool_invocations}
    row = (steps if kind == "step" else tools).get(int(number))
    return None if row is None else {"input": row.input, "output": row.output, "error": row.error}[part]
