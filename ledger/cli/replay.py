"""`tachograph replay`: a run event by event, forward and back."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click
import orjson

from ledger.audit.walking.replay import Moment, NoSuchEvent, Replay
from ledger.audit.walking.standing import Change, changes, standing
from ledger.cli.common import EXIT_NOT_FOUND, command, db_option, fail, json_option, keys_of, plain, print_json
from ledger.cli.standing import screen, step
from ledger.reading.reader import LedgerReader
from ledger.words.event_lines import line

KEYS = "n next · p previous · g go to · f next failure · a first · z last · q quit"
NEXT, PREVIOUS = ("n", " ", "\r", "\x1b[C", "\x1b[B", "j"), ("p", "\x1b[D", "\x1b[A", "k")
QUIT = ("q", "\x1b", "\x03", "\x04")


@click.command()
@click.argument("run", metavar="SESSION/RUN")
@click.option("--at", "at", type=click.IntRange(min=1), metavar="N", help="Only the state just after event N.")
@click.option("--to-first-failure", is_flag=True, help="Only the state where something first went wrong.")
@db_option
@json_option
@command
async def replay(run: str, at: int | None, to_first_failure: bool, db: str, as_json: bool) -> None:
    """Walk through a run event by event, with its state at each and what each changed.

    On a terminal with the keys that are shown there; elsewhere all events are printed, with --json one object a line.
    Exit code 1: there is no such run or event, or nothing went wrong in it.
    """
    session_id, run_id = keys_of(run)
    if at is not None and to_first_failure:
        raise click.UsageError("--at and --to-first-failure are two places")
    async with await LedgerReader.open(db) as reader:
        await reader.status(session_id, run_id)
        walk = Replay.read(reader, session_id, run_id)
        if to_first_failure:
            at = await walk.first_failure()
            if at is None:
                fail(f"nothing went wrong in the {await walk.event_count()} events of {run}", EXIT_NOT_FOUND)
        if at is not None:
            await _show(walk, at, as_json)
        elif not as_json and sys.stdin.isatty() and sys.stdout.isatty():
            await _walk(walk, run)
        else:
            await _print_all(walk, as_json)


async def _show(walk: Replay, seq: int, as_json: bool) -> None:
    try:
        moment = await walk.at(seq)
    except NoSuchEvent as error:
        fail(str(error), EXIT_NOT_FOUND)
    changed = changes(await walk.before(seq), moment)
    if as_json:
        print_json(as_object(moment, changed))
    else:
        click.echo(screen(moment, standing(moment), changed, await walk.event_count()))


async def _print_all(walk: Replay, as_json: bool) -> None:
    before: Moment | None = None
    async for moment in walk.moments():
        changed = changes(before, moment)
        click.echo(orjson.dumps(as_object(moment, changed)) if as_json else step(moment, changed))
        before = moment


async def _walk(walk: Replay, run: str) -> None:
    """Until somebody quits; whatever was on the terminal before is there again afterwards."""
    seq, said = 1, ""
    click.echo("\x1b[?1049h", nl=False)
    try:
        while True:
            moment, event_count = await walk.at(seq), await walk.event_count()
            changed = changes(await walk.before(seq), moment)
            click.clear()
            click.echo(f"{click.style(run, bold=True)}\n{screen(moment, standing(moment), changed, event_count)}\n")
            click.echo(click.style(said or KEYS, dim=not said))
            key = click.getchar()
            if key in QUIT:
                return
            seq, said = await _go(walk, key, seq, event_count)
    except KeyboardInterrupt:
        return
    finally:
        click.echo("\x1b[?1049l", nl=False)


async def _go(walk: Replay, key: str, seq: int, event_count: int) -> tuple[int, str]:
    """Where a key leads, and what there is to say if it leads nowhere."""
    if key in NEXT:
        return (seq + 1, "") if seq < event_count else (seq, "this is the last event")
    if key in PREVIOUS:
        return (seq - 1, "") if seq > 1 else (seq, "this is the first event")
    if key == "a":
        return 1, ""
    if key == "z":
        return event_count, ""
    if key == "f":
        found = await walk.first_failure(seq)
        return (found, "") if found is not None else (seq, "nothing goes wrong after this event")
    if key == "g":
        wanted = click.prompt(f"event 1 to {event_count}", default=str(seq), show_default=False)
        is_there = wanted.isdecimal() and 1 <= int(wanted) <= event_count
        return (int(wanted), "") if is_there else (seq, f"there is no event {wanted[:20]!r}")
    return seq, ""


def as_object(moment: Moment, changed: tuple[Change, ...]) -> Mapping[str, Any]:
    """A moment as JSON: the event, the state after it, and what it changed."""
    event = moment.event
    return {
        "seq": event.seq,
        "type": event.type,
        "is_known": moment.is_known,
        "occurred_us": event.occurred_us,
        "elapsed_us": event.elapsed_us,
        "words": line(event.type, event.fields),
        "changes": [
            {"what": each.what, "before": each.before, "after": each.after, "words": each.words} for each in changed
        ],
        "state": plain(standing(moment)),
    }
