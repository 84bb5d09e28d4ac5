"""What a page's address asks for and the run does not have: said in words, so that nobody takes another part for it."""

from collections.abc import Iterator

from ledger.records import AgentStep, ContentView, ToolInvocation
from ledger.words.format import count, plural
from viewer.present.links import Seek, TraceLinks
from viewer.reading.run import RunReading
from viewer.reading.seeking import SEEK_EVENTS_MAX, Sought


def notices(reading: RunReading, links: TraceLinks, entry_count: int) -> tuple[str, ...]:
    """One sentence for each part of the address that leads nowhere; `entry_count` is that of the transcript."""
    return tuple(_notices(reading, links, entry_count))


def _notices(reading: RunReading, links: TraceLinks, entry_count: int) -> Iterator[str]:
    trace, event_count = reading.trace, reading.trace.run.event_count
    if reading.lost:
        yield f"The run is shown as it is now, and not at event {count(links.at or 0)}: {reading.lost}."
    if links.event is not None and reading.selected is None:
        yield f"There is no event {count(links.event)}: the run has {plural(event_count, 'event')}."
    for name, skipped, total in (
        ("event", links.after, event_count),
        ("model step", links.steps, trace.run.summary.step_count),
        ("tool call", links.tools, trace.run.summary.tool_call_count),
    ):
        if skipped and skipped >= total:
            yield f"There is no {name} after number {count(skipped)}: the run has {count(total)}."
    if links.entries and links.entries >= entry_count:
        yield f"There is no entry after number {count(links.entries)}: the transcript has {count(entry_count)}."
    if links.content is not None:
        found = content_named(reading, links.content)
        if found is None and not _is_elsewhere(reading, links.content):
            yield f"The run has no content {links.content}."
        elif found is not None and links.offset and links.offset >= found.size_bytes:
            size_bytes = plural(found.size_bytes, "byte")
            yield f"The content {links.content} has {size_bytes}, and none behind byte {count(links.offset)}."


def not_found(what: Seek, at: int | None, sought: Sought) -> str:
    """That the event which was looked for is not there, or not within what was looked at."""
    thing = "failure" if what.startswith("failure") else "boundary of the same kind"
    side = "before" if what.endswith("before") else "after"
    place = f"event {count(at)}" if at else "its end"
    if sought.is_all:
        return f"There is no {thing} {side} {place}."
    return (
        f"There is no {thing} among the {plural(SEEK_EVENTS_MAX, 'event')} {side} {place}; looking goes on from here."
    )


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
