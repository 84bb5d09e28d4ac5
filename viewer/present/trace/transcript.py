"""The run as it was held, in order: what each model step said, what tools were asked and gave, and what was refused.

Attempts of one step are one entry. A run that is too long for its events to be read at once has its steps and tool
calls alone, in the order in which they started; what stands between them is in the list of its events.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ledger.reading.parts import WorkLine
from ledger.records import AgentStep, RecordedEvent, RunTrace, ToolInvocation
from ledger.words import event_lines
from ledger.words.codes import plain
from viewer.present.content import arguments, peek, said
from viewer.present.links import TraceLinks
from viewer.present.sentence import Sentence
from viewer.present.trace.attempt_words import attempts_in_words, how_ended, how_refused
from viewer.present.trace.rows import Paging, WorkRow, paging, step_row, tool_row
from viewer.reading.run import RunReading
from viewer.words import gettext as _

ENTRIES_PER_PAGE = 50


@dataclass(frozen=True, slots=True)
class Entry:
    """One of them."""

    key: str
    """Its anchor: `step-3`, `tool-2`, `e42-entry`."""
    kind: str
    """model, tool, guard, refused, node or note."""
    label: str
    """What it is of: the model step's, tool's, guard's or node's name."""
    words: str
    """What happened, where it is no work of a step or a tool."""
    seq: int | None
    """The event it begins with."""
    row: WorkRow | None = None
    arguments: str = ""
    """What a tool was given, in a few words."""
    said: str | Sentence = ""
    """The beginning of what came of it."""
    attempts: tuple[str, ...] = ()
    """Each attempt in words, where there was more than one."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """A page of it."""

    entries: Sequence[Entry]
    entry_count: int
    """On all of its pages."""
    paging: Paging
    is_first: bool
    """Whether it begins with the question,"""
    is_last: bool
    """and ends with the answer."""
    is_whole: bool
    """Whether refusals, guards and waits are among the entries."""


class _Found(NamedTuple):
    """What an entry will be made of, once it is known to be on the page."""

    order: int
    event: RecordedEvent
    work: AgentStep | ToolInvocation | None


Starts = Mapping[str, Sequence[RecordedEvent]]
"""By the boundary of a step without the attempt's number, or by the attempt of anything else: what happened in it."""


def transcript_of(reading: RunReading, links: TraceLinks) -> Transcript:
    """The page that the address asks for, of the run as it is shown."""
    if reading.complete:
        return transcript(reading.trace, reading.past_events, links)
    return _of_long(reading, links)


def transcript(trace: RunTrace, events: Sequence[RecordedEvent], links: TraceLinks) -> Transcript:
    """A page of a run whose events are all known."""
    attempts = _attempts(events)
    found = _found(trace, events, attempts)
    skipped = _skipped(found, links)
    shown, own = found[skipped : skipped + ENTRIES_PER_PAGE], links.within("transcript")
    currency = trace.run.currency
    return Transcript(
        entries=[
            _note(event, attempts) if work is None else _worked(work, event.seq, attempts, own, currency)
            for _order, event, work in shown
        ],
        entry_count=len(found),
        paging=paging(skipped, len(shown), len(found), ENTRIES_PER_PAGE, links.entries_from),
        is_first=skipped == 0,
        is_last=skipped + len(shown) >= len(found),
        is_whole=True,
    )


def _of_long(reading: RunReading, links: TraceLinks) -> Transcript:
    """A page of steps and tool calls in the order in which they started.

    The address says how many of each are before it: of two lists in order, a page of both needs a page of each.
    """
    work: list[AgentStep | ToolInvocation] = [*reading.steps, *reading.tools]
    work.sort(key=_by_start)
    shown, own = work[:ENTRIES_PER_PAGE], links.within("transcript")
    order = sorted(reading.works, key=_by_start)

    def page_from(skipped: int) -> str:
        steps = sum(line.kind == "model" for line in order[:skipped])
        return links.works_from(steps, skipped - steps)

    skipped, currency = links.steps + links.tools, reading.trace.run.currency
    return Transcript(
        entries=[_worked(each, None, {}, own, currency) for each in shown],
        entry_count=len(order),
        paging=paging(skipped, len(shown), len(order), ENTRIES_PER_PAGE, page_from),
        is_first=skipped == 0,
        is_last=skipped + len(shown) >= len(order),
        is_whole=False,
    )


def _by_start(work: AgentStep | ToolInvocation | WorkLine) -> int:
    return work.started_elapsed_us


def _found(trace: RunTrace, events: Sequence[RecordedEvent], attempts: Starts) -> list[_Found]:
    found = [_Found(event.seq, event, None) for event in events if _is_told(event)]
    work: list[AgentStep | ToolInvocation] = [*trace.agent_steps, *trace.tool_invocations]
    for each in work:
        own = attempts.get(_key(each))
        if own:
            found.append(_Found(own[0].seq, own[0], each))
    return sorted(found, key=lambda each: each.order)


def _key(work: AgentStep | ToolInvocation) -> str:
    return work.boundary if isinstance(work, AgentStep) else work.attempt_id


def _attempts(events: Iterable[RecordedEvent]) -> Starts:
    """What happened in attempts from their starts on: of models by step, of tools and all others by attempt."""
    keys: dict[str, str] = {}
    found: dict[str, list[RecordedEvent]] = {}
    for event in events:
        attempt_id = event.fields.get("attempt_id")
        if event.type == "attempt.started":
            boundary = str(event.fields["boundary"]).rpartition("/")[0]
            keys[str(attempt_id)] = boundary if event.fields["kind"] == "model" else str(attempt_id)
        key = keys.get(str(attempt_id))
        if key is not None:
            found.setdefault(key, []).append(event)
    return found


def _is_told(event: RecordedEvent) -> bool:
    """Whether an event is an entry by itself: what is no work of a model or a tool, and matters to the course."""
    if event.type == "attempt.started":
        return event.fields.get("kind") not in ("model", "tool")
    if event.type == "policy.decided":
        return event.fields.get("allowed") is False
    return event.type in _TOLD


_TOLD = {
    "reservation.rejected": "refused",
    "retry.refused": "refused",
    "limit.would_reject": "note",
    "graph.transitioned": "node",
    "graph.finished": "node",
    "scope.exhausted": "refused",
    "hidden_retry.detected": "note",
    "cancellation.requested": "note",
    "cancellation.signalled": "note",
    "attempt.abandoned": "note",
    "attempt.finished_late": "note",
    "content.erased": "note",
}


def _skipped(found: Sequence[_Found], links: TraceLinks) -> int:
    """The beginning of the page, which is the one that holds the content that the address names."""
    if links.entries or links.content is None:
        return links.entries
    key = links.content.rpartition("-")[0]
    at = next((index for index, each in enumerate(found) if each.work is not None and _anchor(each.work) == key), 0)
    return at // ENTRIES_PER_PAGE * ENTRIES_PER_PAGE


def _anchor(work: AgentStep | ToolInvocation) -> str:
    return f"step-{work.step_no}" if isinstance(work, AgentStep) else f"tool-{work.invocation_no}"


def _worked(
    work: AgentStep | ToolInvocation, seq: int | None, attempts: Starts, links: TraceLinks, currency: str | None
) -> Entry:
    """What a step or a tool did."""
    is_step = isinstance(work, AgentStep)
    row = step_row(work, links, currency) if isinstance(work, AgentStep) else tool_row(work, links)
    told = tuple(attempts_in_words(attempts.get(_key(work), ()))) if is_step else ()
    return Entry(
        key=row.key,
        kind="model" if is_step else "tool",
        label=row.name,
        words="",
        seq=seq,
        row=row,
        arguments="" if isinstance(work, AgentStep) else _given(work, row),
        said=said(work.output if work.status != "FAILED" else work.error or work.output),
        attempts=told if len(told) > 1 else (),
    )


def _given(tool: ToolInvocation, row: WorkRow) -> str:
    """In a few words, as its row has them, unless that says why it failed."""
    return row.peek if tool.status != "FAILED" else arguments(tool) or peek(tool.input)


def _note(event: RecordedEvent, attempts: Starts) -> Entry:
    fields = event.fields
    kind, label = _TOLD.get(event.type, "guard"), str(fields.get("name", ""))
    words = event_lines.line(event.type, fields)
    if event.type == "attempt.started":
        ends = [how_ended(each) for each in attempts.get(str(fields.get("attempt_id")), ())]
        words = ", ".join(filter(None, [plain(str(fields.get("operation", ""))), *ends]))
    elif event.type == "reservation.rejected":
        words = how_refused(event)
    elif event.type == "policy.decided":
        reason = plain(str(fields["reason"]))
        said = _("not executed: denied by %(policy)s (%(reason)s)", policy=fields["policy"], reason=reason)
        kind, words = "refused", said
    elif kind == "node":
        label = str(fields.get("to_node") or fields.get("final_node") or "")
    return Entry(f"e{event.seq}-entry", kind, label, words, event.seq)
