"""The lists of a trace page: steps and tools, a page of each."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ledger.records import AgentStep, ContentView, ToolInvocation
from ledger.words.format import count, duration, money
from viewer.present.content import Block, arguments, block, peek, reply
from viewer.present.links import TraceLinks
from viewer.reading.run import ROWS_PER_PAGE
from viewer.words import N_, ngettext
from viewer.words import gettext as _

CONTENT_PARTS = ("input", "output", "error")


@dataclass(frozen=True, slots=True)
class Paging:
    """Which stretch of a list is shown, and the addresses of its neighbours."""

    showing: str
    previous: str | None
    following: str | None


@dataclass(frozen=True, slots=True)
class WorkRow:
    """A model step or a tool invocation, with its content."""

    key: str
    number: int
    name: str
    facts: tuple[str, ...]
    """Model, attempts, tokens, effect: what there is."""
    status: str
    warning: str
    """What should not have happened in it."""
    scope: str
    start_us: int
    duration_us: int | None
    peek: str
    """The arguments in a few words, or why it failed."""
    blocks: tuple[tuple[str, Block], ...]
    asked_for: bool
    """Whether the page's address names a content of it, so that it starts open."""


def step_rows(
    shown: Sequence[AgentStep], total: int, links: TraceLinks, currency: str | None = None
) -> tuple[list[WorkRow], Paging]:
    """A page of the model steps, of which there are `total`."""
    return [step_row(step, links, currency) for step in shown], paging(
        links.steps, len(shown), total, ROWS_PER_PAGE, links.steps_from
    )


def tool_rows(shown: Sequence[ToolInvocation], total: int, links: TraceLinks) -> tuple[list[WorkRow], Paging]:
    """A page of the tool invocations, of which there are `total`."""
    return [tool_row(tool, links) for tool in shown], paging(
        links.tools, len(shown), total, ROWS_PER_PAGE, links.tools_from
    )


def paging(skipped: int, shown: int, total: int, page_size: int, href: Callable[[int], str]) -> Paging:
    """`Showing N–M of T`; a page behind the end shows nothing and leads back."""
    if shown:
        first, last = count(skipped + 1), count(skipped + shown)
        showing = _("Showing %(first)s–%(last)s of %(total)s", first=first, last=last, total=count(total))
    else:
        showing = _("Showing 0 of %(total)s", total=count(total))
    last_start = max((total - 1) // page_size * page_size, 0)
    return Paging(
        showing=showing,
        previous=href(min(max(skipped - page_size, 0), last_start)) if skipped else None,
        following=href(skipped + shown) if shown and skipped + shown < total else None,
    )


def step_row(step: AgentStep, links: TraceLinks, currency: str | None) -> WorkRow:
    """One model step."""
    tokens = [_(words, number=count(amount)) for amount, words in _tokens(step) if amount is not None]
    attempts = ngettext("%(num)s attempt", "%(num)s attempts", step.attempt_count) if step.attempt_count > 1 else ""
    unknown = _("tokens unknown") if not tokens and step.status == "SUCCESS" else ""
    contents = (step.input, step.output, step.error)
    key = f"step-{step.step_no}"
    return WorkRow(
        key=key,
        number=step.step_no,
        name=step.name,
        facts=tuple(filter(None, (step.model, attempts, *tokens, unknown, *_figures(step, currency), _bound(step)))),
        status=step.status,
        warning=_warning(step),
        scope=step.scope,
        start_us=step.started_elapsed_us,
        duration_us=step.duration_us,
        peek=_peek(step.status, step.error, step.failure) or reply(step.output),
        blocks=_blocks(key, contents, links),
        asked_for=_asked_for(key, links),
    )


def tool_row(tool: ToolInvocation, links: TraceLinks) -> WorkRow:
    """One invocation."""
    key = f"tool-{tool.invocation_no}"
    return WorkRow(
        key=key,
        number=tool.invocation_no,
        name=tool.tool_name,
        facts=tuple(filter(None, (tool.effect or _("effect not declared"), tool.call_id, _bound(tool)))),
        status=tool.status,
        warning=_warning(tool),
        scope=tool.scope,
        start_us=tool.started_elapsed_us,
        duration_us=tool.duration_us,
        peek=_peek(tool.status, tool.error, tool.failure) or arguments(tool) or peek(tool.input),
        blocks=_blocks(key, (tool.input, tool.output, tool.error), links),
        asked_for=_asked_for(key, links),
    )


def _tokens(step: AgentStep) -> tuple[tuple[int | None, str], ...]:
    return (step.input_tokens, N_("%(number)s in")), (step.output_tokens, N_("%(number)s out"))


def _figures(step: AgentStep, currency: str | None) -> Iterator[str]:
    if step.cost_micros is not None:
        yield f"{money(step.cost_micros)} {currency or _('of cost')}"
    if step.first_output_us is not None:
        after = duration(step.first_output_us)
        if step.output_chunks is None:
            yield _("first output after %(time)s", time=after)
            return
        yield ngettext(
            "first output of %(num)s chunk after %(time)s",
            "first output of %(num)s chunks after %(time)s",
            step.output_chunks,
            time=after,
        )


def _bound(row: AgentStep | ToolInvocation) -> str:
    return "" if row.timeout_us is None else _("at most %(time)s an attempt", time=duration(row.timeout_us))


def _warning(row: AgentStep | ToolInvocation) -> str:
    number = row.hidden_retry_count
    return ngettext("%(num)s hidden request", "%(num)s hidden requests", number) if number else ""


def _peek(status: str, error: ContentView | None, failure: str | None) -> str:
    if status != "FAILED":
        return ""
    return peek(error) if error is not None and error.data is not None else (failure or "failed").lower()


def _blocks(key: str, contents: tuple[ContentView | None, ...], links: TraceLinks) -> tuple[tuple[str, Block], ...]:
    found = (
        (part, content_block(f"{key}-{part}", content, links))
        for part, content in zip(CONTENT_PARTS, contents, strict=True)
    )
    return tuple((part, each) for part, each in found if each is not None)


def content_block(key: str, content: ContentView | None, links: TraceLinks, *, long: bool = False) -> Block | None:
    """The block of a content, longer and from the asked-for byte, if there is one, where the address names it."""
    asked_for = links.content == key
    start = links.offset if asked_for and content is not None and links.offset < content.size_bytes else 0
    return block(key, content, asked_for=asked_for or long, start=start)


def _asked_for(key: str, links: TraceLinks) -> bool:
    return links.content is not None and links.content.rpartition("-")[0] == key
