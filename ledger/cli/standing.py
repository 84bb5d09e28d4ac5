"""A run at one moment as text for a terminal: what it stood at, and what the event before made of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import click

from ledger.audit.walking.replay import Moment
from ledger.audit.walking.standing import Attempt, Budget, Change, Standing
from ledger.cli.common import table
from ledger.words.codes import amount, noun, plain, resource
from ledger.words.event_lines import is_failure, line
from ledger.words.format import count, duration, elapsed, plural
from ledger.words.text import visible

TYPE_WIDTH = 22
BAR_CHARS = 20
CHANGES_CHARS = 100


def step(moment: Moment, changes: Sequence[Change]) -> str:
    """One event and what it changed, in a line or two."""
    event = moment.event
    name = _styled(f"{event.type:<{TYPE_WIDTH}}", moment)
    head = f"{count(event.seq):>6}  {elapsed(event.elapsed_us):>9}  {name}  {line(event.type, event.fields)}"
    return "\n".join([head.rstrip(), *_wrapped(visible(change.words) for change in changes)])


def _wrapped(words: Iterable[str]) -> Iterator[str]:
    """Side by side below an event, as many as a line has room for: the first event names every limit of the run."""
    line = ""
    for each in words:
        if line and len(line) + len(each) > CHANGES_CHARS:
            yield f"{'':19}{line}"
            line = each
        else:
            line = f"{line} · {each}" if line else each
    if line:
        yield f"{'':19}{line}"


def screen(moment: Moment, run: Standing, changes: Sequence[Change], event_count: int) -> str:
    """All of the run at that moment."""
    event = moment.event
    of = f"event {count(run.seq)} of {count(event_count)}, {elapsed(event.elapsed_us)} s"
    lines = [
        f"{of}  {_styled(event.type, moment)}  {line(event.type, event.fields)}",
        "",
        *(f"  {click.style('•', fg='cyan')} {visible(change.words)}" for change in changes),
        *([] if changes else [click.style("  (changed nothing)" if moment.is_known else _UNKNOWN, dim=True)]),
        "",
        *_state(run),
        "",
        table([["RESOURCE", "USED", "LIMIT", ""], *(_row(each, run.currency) for each in run.budgets)]),
    ]
    for scope in run.scopes:
        title = f"scope {visible(scope.name)}{', exhausted' if scope.exhausted else ''}"
        lines += ["", title]
        if scope.budgets:
            lines.append(table([_row(each, run.currency) for each in scope.budgets], indent="  "))
    return "\n".join(lines)


_UNKNOWN = "  (an event of a type that this program does not know: it changed nothing here)"


def _state(run: Standing) -> Iterator[str]:
    reason = f" ({plain(run.reason)})" if run.reason and run.reason != run.status else ""
    yield f"run       {plain(run.status)}{reason}{', answered' if run.is_answered else ''}"
    yield f"time      {duration(run.elapsed_us)} of {duration(run.timeout_us)}, {duration(run.left_us)} left"
    signalled = f"signalled: {plain(run.cancel_signalled)}" if run.cancel_signalled else ""
    requested = f"requested: {plain(run.cancel_requested)}" if run.cancel_requested else ""
    yield f"cancelled {', '.join(filter(None, (requested, signalled))) or 'no'}"
    yield f"graph     {_graph(run)}"
    yield f"open      {_names(run.open_attempts)}"
    if run.unsettled_attempts:
        yield f"unsettled {_names(run.unsettled_attempts)}"
    if run.abandoned_attempts:
        yield f"abandoned {_names(run.abandoned_attempts)}"
    counts = {"model steps": run.step_count, "tool invocations": run.tool_call_count}
    counts |= {plain(kind): number for kind, number in run.incidents.items()}
    counts |= {"attempts of unknown usage": run.usage_unknown_count, "attempts of unknown cost": run.cost_unknown_count}
    counts |= {"erasures": run.erasure_count}
    yield f"so far    {', '.join(f'{what} {count(number)}' for what, number in counts.items() if number) or 'nothing'}"
    if run.refused:
        yield f"refused   {noun(run.refused)}"


def _graph(run: Standing) -> str:
    if run.node is None and run.graph_final_node is None:
        return "-"
    where = f"in {visible(run.node or '-')}"
    if run.graph_final_node is not None:
        where = f"finished in {visible(run.graph_final_node)}{', degraded' if run.is_degraded else ''}"
    return f"{where}, {plural(run.transition_count, 'transition')}"


def _names(attempts: Sequence[Attempt]) -> str:
    return ", ".join(visible(attempt.name) for attempt in attempts) or "-"


def _row(budget: Budget, currency: str | None) -> list[str]:
    key = budget.resource
    label = resource(key) + (f", {currency}" if key == "cost_micros" and currency else "")
    reserved = f" ({amount(key, budget.reserved)} reserved)" if budget.reserved else ""
    limit = "-" if budget.limit is None else f"{amount(key, budget.limit)}{' observed' if budget.is_observed else ''}"
    return [visible(label), f"{amount(key, budget.used)}{reserved}", limit, _bar(budget)]


def _bar(budget: Budget) -> str:
    """The share of the limit that is used."""
    if not budget.limit:
        return ""
    filled = min(BAR_CHARS, round(BAR_CHARS * max(0, budget.used) / budget.limit))
    return "█" * filled + "·" * (BAR_CHARS - filled)


def _styled(text: str, moment: Moment) -> str:
    is_bad = is_failure(moment.event.type, moment.event.fields)
    return click.style(text, bold=True, fg="red" if is_bad else None)
