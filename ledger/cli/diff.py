"""`tachograph diff`: what one run did that another did not, or not so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from ledger.audit.comparing.comparing import Comparison, Delta, Entry, compare
from ledger.audit.comparing.crossings import Crossing
from ledger.cli.common import EXIT_UNUSABLE, command, db_option, fail, json_option, keys_of, plain, print_json, table
from ledger.errors import RunNotFound
from ledger.reading.reader import LedgerReader
from ledger.records import RunTrace
from ledger.words.codes import amount, resource
from ledger.words.codes import plain as in_words
from ledger.words.format import count, duration, plural
from ledger.words.text import visible
from ledger.words.usage import COST, known

EXIT_DIFFERENT = 1
MARKS = {"same": " ", "different": "~", "only_a": "-", "only_b": "+"}
COLOURS = {"different": "yellow", "only_a": "red", "only_b": "green"}


@click.command()
@click.argument("a", metavar="SESSION/RUN")
@click.argument("b", metavar="SESSION/RUN")
@click.option("--all", "show_all", is_flag=True, help="Show boundaries that are alike too.")
@db_option
@json_option
@command
async def diff(a: str, b: str, show_all: bool, db: str, as_json: bool) -> None:
    """Compare two runs: which boundaries they share, and what is added, missing or different in the second.

    Boundaries are laid side by side by kind and name. Exit code 0: no difference was found; 1: there are some; 2: they
    could not be compared.
    """
    keys_a, keys_b = keys_of(a), keys_of(b)
    async with await LedgerReader.open(db) as reader:
        try:
            found = await compare(reader, keys_a, keys_b)
        except RunNotFound as error:
            fail(str(error), EXIT_UNUSABLE)
    if as_json:
        print_json(as_object(found))
    else:
        click.echo("\n".join(_lines(found, show_all)))
    if not found.is_same:
        raise click.exceptions.Exit(EXIT_DIFFERENT)


def _lines(found: Comparison, show_all: bool) -> Iterator[str]:
    yield table([["A", *_run(found.a)], ["B", *_run(found.b)]])
    yield ""
    yield table([["", "A", "B", "B - A"], _time(found.elapsed_us), *(_usage(each, found) for each in found.usage)])
    yield ""
    for each in found.differences:
        yield click.style(f"~ {each.what}: {visible(each.a)} | {visible(each.b)}", fg="yellow")
    shown = list(_boundaries(found.entries, show_all))
    if shown:
        yield from ("", *shown) if found.differences else shown
    counts = {sign: found.count(sign) for sign in ("same", "different", "only_a", "only_b")}
    yield ""
    yield (
        f"{plural(counts['same'], 'boundary', 'boundaries')} alike, {count(counts['different'])} different,"
        f" {count(counts['only_a'])} only in A, {count(counts['only_b'])} only in B"
    )
    if found.unknown_count:
        yield (
            f"cannot tell of {plural(found.unknown_count, 'content')}: of the same size, and not kept, erased or"
            " damaged on one side"
        )
    if not found.is_longest:
        yield "the runs differ so much that more may be in common than was laid side by side"
    if found.is_same:
        yield "no difference was found"


def _boundaries(entries: Sequence[Entry], show_all: bool) -> Iterator[str]:
    """A line for each boundary; those that are alike are counted, unless all are to be shown."""
    alike = 0
    width_a = width_b = max((len(str(max(_seq(each.a), _seq(each.b)))) for each in entries), default=1)
    for entry in entries:
        if entry.sign == "same" and not show_all:
            alike += 1
            continue
        if alike:
            yield click.style(f"  … {count(alike)} alike", dim=True)
            alike = 0
        numbers = f"{_number(entry.a):>{width_a}} {_number(entry.b):>{width_b}}"
        one = entry.a or entry.b
        assert one is not None, "an entry has a side"
        line = f"{MARKS[entry.sign]} {numbers}  {one.kind:<12} {visible(one.title)}{_told(entry)}"
        yield click.style(line, fg=COLOURS.get(entry.sign))
    if alike:
        yield click.style(f"  … {count(alike)} alike", dim=True)


def _told(entry: Entry) -> str:
    one = entry.a or entry.b
    if entry.a is None or entry.b is None:
        return f"  {visible(one.outcome)}" if one is not None and one.outcome else ""
    told = [f"{each.what}: {each.a} | {each.b}" for each in entry.differences]
    told += [f"cannot tell of its {what}" for what in entry.cannot_tell]
    if told and entry.a.duration_us != entry.b.duration_us:
        told.append(f"time: {_lasted(entry.a.duration_us)} | {_lasted(entry.b.duration_us)}")
    return f"  {visible('; '.join(told))}" if told else ""


def _run(trace: RunTrace) -> list[str]:
    run, summary = trace.run, trace.run.summary
    lasted = "running" if run.elapsed_us is None else f"after {duration(run.elapsed_us)}"
    name = f"{summary.session_id}/{summary.run_id}"
    return [name, in_words(summary.status), lasted, plural(run.event_count, "event")]


def _time(elapsed: Delta) -> list[str]:
    if elapsed.a is None or elapsed.b is None:
        return ["Time", _lasted(elapsed.a), _lasted(elapsed.b), "-"]
    return ["Time", _lasted(elapsed.a), _lasted(elapsed.b), _signed(elapsed.b - elapsed.a, duration)]


def _usage(delta: Delta, found: Comparison) -> list[str]:
    a, b = delta.a or 0, delta.b or 0
    currency = f", {found.a.run.currency}" if delta.name == COST and found.a.run.currency else ""
    difference = _signed(b - a, lambda number: amount(delta.name, number)) if found.is_told(delta) else "-"
    used = (known(side.run, delta.name, amount(delta.name, n)) for side, n in ((found.a, a), (found.b, b)))
    return [visible(resource(delta.name)) + currency, *used, difference]


def _signed(number: int, say: Any) -> str:
    return "=" if number == 0 else f"{'+' if number > 0 else '-'}{say(abs(number))}"


def _lasted(us: int | None) -> str:
    return "-" if us is None else duration(us)


def _number(crossing: Crossing | None) -> str:
    return "" if crossing is None else str(crossing.seq)


def _seq(crossing: Crossing | None) -> int:
    return 0 if crossing is None else crossing.seq


def as_object(found: Comparison) -> dict[str, Any]:
    """The comparison as JSON: times in microseconds, both sides of every boundary."""
    return {
        "is_same": found.is_same,
        "is_longest": found.is_longest,
        "a": _run_object(found.a),
        "b": _run_object(found.b),
        "differences": [each._asdict() for each in found.differences],
        "cannot_tell": found.cannot_tell,
        "usage": [each._asdict() for each in (*found.usage, found.elapsed_us._replace(name="elapsed_us"))],
        "boundaries": [
            {
                "sign": each.sign,
                "differences": [difference._asdict() for difference in each.differences],
                "cannot_tell": each.cannot_tell,
                "a": _crossing_object(each.a),
                "b": _crossing_object(each.b),
            }
            for each in found.entries
        ],
    }


def _run_object(trace: RunTrace) -> dict[str, Any]:
    run, summary = trace.run, trace.run.summary
    return {
        "session_id": summary.session_id,
        "run_id": summary.run_id,
        "status": summary.status,
        "reason": run.outcome_reason,
        "elapsed_us": run.elapsed_us,
        "event_count": run.event_count,
        "head_link": run.head_link,
    }


def _crossing_object(crossing: Crossing | None) -> dict[str, Any] | None:
    if crossing is None:
        return None
    fields: dict[str, Any] = plain(crossing)
    for what in ("input", "output"):
        piece = getattr(crossing, what)
        fields[what] = None if piece is None else piece._asdict()
    return fields
