"""`tachograph erase` and `tachograph retention`: content that is to be gone for good."""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import click

from ledger.cli.common import (
    EXIT_NOT_FOUND,
    EXIT_UNUSABLE,
    command,
    db_option,
    fail,
    json_option,
    keys_of,
    open_existing,
    print_json,
)
from ledger.erasing.erasing import ErasureReport
from ledger.erasing.errors import SecondPersonNeeded
from ledger.erasing.two_persons import ErasureRequest
from ledger.words.format import plural

SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
REACHED = {
    "ROWS": "gone from the tables, but perhaps not yet from the log and the file",
    "LOG": "gone from the tables and the log, but perhaps not yet from the file",
    "FILE": "gone from the tables and their files",
}

Erase = Callable[..., Awaitable[ErasureReport]]
Ask = Callable[[], Awaitable[ErasureRequest]]

actor_option = click.option("--actor", help="Who wants it: a pseudonymous code, since it can never be erased.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Only say how much there is to erase.")


@click.command()
@click.argument("run", metavar="[SESSION/RUN]", required=False)
@click.option("--session", help="Everything of this session.")
@click.option("--digest", help="One content, by its digest; with SESSION/RUN only there.")
@click.option("--confirm", metavar="REQUEST", help="Carry out what another person asked for.")
@click.option("--finish", is_flag=True, help="Finish erasures that were cut short; the file is written anew.")
@actor_option
@click.option("--reason", default="REQUESTED", show_default=True, help="Why, as a code.")
@dry_run_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@db_option
@json_option
@command
async def erase(
    run: str | None,
    session: str | None,
    digest: str | None,
    confirm: str | None,
    finish: bool,
    actor: str | None,
    reason: str,
    dry_run: bool,
    yes: bool,
    db: str,
    as_json: bool,
) -> None:
    """Erase content for good: a run's, a session's, or one. Events stay, and say that, when and on whose word."""
    about: dict[str, Any] = {"run": _keys(run), "session": session, "digest": digest, "actor": actor, "reason": reason}
    async with await open_existing(db) as ledger:
        if finish:
            _say_finished(await ledger.finish_erasures(), as_json=as_json)
            return
        if confirm is not None:
            if actor is None or run or session or digest or dry_run:
                fail("--confirm needs --actor, and nothing else", EXIT_UNUSABLE)
            _say(await ledger.confirm_erasure(confirm, actor=actor), as_json=as_json, is_dry_run=False)
            return
        planned = await ledger.erase(**about, dry_run=True)
        if not dry_run:
            question = f"Erase {_amount(planned)} for good?"
            if planned.content_count and not yes and not click.confirm(question, err=True):
                fail("nothing was erased", EXIT_NOT_FOUND)
            ask = None if actor is None else partial(ledger.ask_to_erase, **about)
            planned = await _or_ask(_with_progress(ledger.erase, planned, as_json, **about), ask, as_json=as_json)
    _say(planned, as_json=as_json, is_dry_run=dry_run)


@click.command()
@click.option("--older-than", required=True, metavar="AGE", help="Such as 90d, 12h or 6w, since the run ended.")
@actor_option
@dry_run_option
@db_option
@json_option
@command
async def retention(older_than: str, actor: str | None, dry_run: bool, db: str, as_json: bool) -> None:
    """Erase the contents of runs that ended long ago; never their events."""
    age = re.fullmatch(r"([0-9]{1,9})([smhdw])", older_than)
    if age is None:
        fail("--older-than needs a number and one of s, m, h, d and w, such as 90d", EXIT_UNUSABLE)
    age_s = int(age[1]) * SECONDS[age[2]]
    async with await open_existing(db) as ledger:
        report = await ledger.erase_older_than(age_s, actor=actor, dry_run=True)
        if not dry_run:
            erasing = _with_progress(ledger.erase_older_than, report, as_json, age_s=age_s, actor=actor)
            ask = None
            if actor is not None:
                ask = partial(ledger.ask_to_erase, actor=actor, older_than_s=age_s, reason="RETENTION")
            report = await _or_ask(erasing, ask, as_json=as_json)
    _say(report, as_json=as_json, is_dry_run=dry_run)


async def _or_ask(erasing: Awaitable[ErasureReport], ask: Ask | None, *, as_json: bool) -> ErasureReport:
    """Erase, or, where two persons may, ask the other one on behalf of whoever was named."""
    try:
        return await erasing
    except SecondPersonNeeded:
        if ask is None:
            raise
        request = await ask()
        if as_json:
            print_json(
                {"request_id": request.request_id, "asked_by": request.asked_by, "expires_us": request.expires_us}
            )
        confirming = f"`tachograph erase --confirm {request.request_id} --actor NAME`"
        fail(f"nothing is erased until another person confirms it: {confirming}", EXIT_NOT_FOUND)


async def _with_progress(erase: Erase, planned: ErasureReport, as_json: bool, **about: Any) -> ErasureReport:
    with click.progressbar(
        length=planned.run_count, label="erasing", file=sys.stderr, hidden=as_json or not sys.stderr.isatty()
    ) as bar:
        return await erase(**about, on_progress=lambda done: bar.update(done - bar.pos))


def _say(report: ErasureReport, *, as_json: bool, is_dry_run: bool) -> None:
    if as_json:
        print_json(report)
    elif is_dry_run:
        click.echo(f"would erase {_amount(report)}")
    elif report.erasure_id is None:
        click.echo("nothing is left to erase")
    else:
        click.echo(f"erased {_amount(report)}: {REACHED[str(report.stage)]} ({report.erasure_id})")
        for run_id in report.runs_unreadable:
            click.echo(f"erased, but its events cannot be read, so it could not be told: run {run_id}")
    _leave_unless_finished(report.stage, report.problem)


def _say_finished(finished: tuple[int, str | None, str | None], *, as_json: bool) -> None:
    count, stage, problem = finished
    if as_json:
        print_json({"erasure_count": count, "stage": stage, "problem": problem})
    elif stage is None:
        click.echo("no erasure is unfinished")
    else:
        click.echo(f"{plural(count, 'erasure')}: {REACHED[stage]}")
    _leave_unless_finished(stage, problem)


def _leave_unless_finished(stage: str | None, problem: str | None) -> None:
    if stage not in (None, "FILE"):
        fail(f"not finished, as {problem}: run `tachograph erase --finish` later", EXIT_NOT_FOUND)


def _amount(report: ErasureReport) -> str:
    contents, runs = plural(report.content_count, "content"), plural(report.run_count, "run")
    return f"{contents} ({report.size_bytes:,} bytes) of {runs}"


def _keys(run: str | None) -> tuple[str, str] | None:
    return None if run is None else keys_of(run)
