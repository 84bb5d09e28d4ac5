"""What a ledger and what it stands on are like today, and what of it needs somebody's attention."""

from __future__ import annotations

import asyncio
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ledger.append.front import WriterLimits
from ledger.erasing.erasing import ErasureLimits
from ledger.reading.reader import LedgerReader
from ledger.store.place import is_postgres, path_of

FREE_WARN_BYTES = 1024 * 1024 * 1024
"""Room for a ledger to grow that is little."""
UNSEQUENCED_WARN_S = 60.0
"""While a ledger is open, an event has its place in the public order within a second."""
FOLLOWER_WARN_EVENTS = 10_000


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that is so."""

    name: str
    value: str | float
    advice: str | None = None
    """What to do about it, where it needs attention."""
    origin: str | None = None
    """Of a setting: where it was set."""


async def examine(url: str | Path, origin: str | None = None) -> list[Fact]:
    """All that can be found out without changing anything; a `LedgerFileError` if there is no ledger."""
    facts = [*_program(), Fact("db", _shown(url), origin=origin), *_settings()]
    # An engine is imported only where it is used: its driver may not be installed.
    if is_postgres(url):
        from ledger.store.postgres.examining import examine_postgres

        facts += await examine_postgres(str(url))
    else:
        from ledger.store.examining import examine_sqlite

        facts += await asyncio.to_thread(examine_sqlite, path_of(url))
    is_current = any(fact.name == "schema" and fact.advice is None for fact in facts)
    return facts + (await _order(url) if is_current else [])


def needs_attention(facts: Sequence[Fact]) -> bool:
    """Whether anything is to be done."""
    return any(fact.advice is not None for fact in facts)


def standing_of(standing: str) -> Fact:
    """Whether the ledger may be written."""
    advice = {
        "backup": "this is a backup: make a ledger of it with `tachograph restore`",
        "moved": "it was moved and goes on elsewhere: see to it that nobody is still sent here",
        "restored": "it was restored from a dump: if this one is to go on, run `tachograph adopt`",
    }
    return Fact("standing", standing, advice.get(standing))


def schema_of(found: str, newest: str) -> Fact:
    """Which migrations were made."""
    return Fact("schema", found, None if found == newest else f"bring it to {newest} with `tachograph migrate`")


def unfinished_of(count: int) -> Fact:
    """Erasures that have not come to their end."""
    return Fact("erasures_unfinished", count, "run `tachograph erase --finish`" if count else None)


async def _order(url: str | Path) -> list[Fact]:
    """Whether events get their place in the public order, and how far behind it named followers are."""
    async with await LedgerReader.open(url) as reader:
        vitals = await reader.vitals()
    facts: list[Fact] = []
    if vitals.unsequenced is not None and vitals.unsequenced_s is not None:
        advice = "followers do not see them: let a process open the ledger, or read in the logs of those that have it"
        is_late = vitals.unsequenced_s > UNSEQUENCED_WARN_S
        facts.append(Fact("unsequenced_events", vitals.unsequenced))
        facts.append(Fact("unsequenced_s", round(vitals.unsequenced_s, 1), advice if is_late else None))
    lags = vitals.follower_lags.items()
    return facts + [Fact(f"follower_lag_of {name}", lag, _advice_on(lag)) for name, lag in lags]


def _advice_on(lag: int) -> str | None:
    if lag < 0:
        return "it has seen a log that went further than this one: let it begin anew with `ledger.followers.forget`"
    if lag > FOLLOWER_WARN_EVENTS:
        return "see to it that it runs; if nobody needs it any more, drop it with `ledger.followers.forget`"
    return None


def _shown(url: str | Path) -> str:
    if is_postgres(url):
        from ledger.store.postgres.place import place_at

        return str(place_at(str(url)))
    return str(path_of(url))


def _program() -> list[Fact]:
    try:
        number = version("tachograph")
    except PackageNotFoundError:
        number = "(not installed)"
    return [Fact("tachograph", number), Fact("python", platform.python_version()), Fact("platform", sys.platform)]


def _settings() -> list[Fact]:
    """What a program that opens the ledger may set, as it is unless that is done."""
    return [
        Fact(field.name, getattr(limits, field.name), origin="default")
        for limits in (WriterLimits(), ErasureLimits())
        for field in fields(limits)
    ]
