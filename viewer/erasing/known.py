"""Every erasure that is on record, with how far it has come: folded from what the ledger says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from viewer.audit.history import Entry, Kind, Known

State = Literal["asked", "expired", "confirmed", "done"]
"""Nobody has confirmed it yet, nobody did so in time, it is decided, and all of it is gone."""


@dataclass(frozen=True, slots=True)
class What:
    """What is to be erased, and why."""

    scope: str
    reason: str
    session_id: str | None = None
    run_id: str | None = None
    digest: str | None = None
    before_us: int | None = None


@dataclass(frozen=True, slots=True)
class Erasure:
    """One erasure."""

    what: What
    state: State
    request_id: str | None = None
    """Where one person asked another one."""
    asked_by: str | None = None
    asked_us: int | None = None
    expires_us: int | None = None
    erasure_id: str | None = None
    """The decision,"""
    decided_by: str | None = None
    """who took it: of two persons, the one who confirmed,"""
    decided_us: int | None = None
    finished_us: int | None = None
    """and when all was gone."""
    content_count: int | None = None
    size_bytes: int | None = None

    def is_in(self, session_prefix: str | None) -> bool:
        """Whether it is about sessions alone whose ids begin so; None stands for all."""
        return session_prefix is None or (self.what.session_id or "").startswith(session_prefix)


def erasures_known(known: Mapping[Kind, Known], now_us: int) -> list[Erasure]:
    """All of them, the newest first."""
    entries = sorted((*known["erasures"].newest, *known["retention"].newest), key=lambda entry: entry.seq)
    found: dict[str, Erasure] = {}
    for entry in entries:
        facts = entry.facts
        if entry.type == "erasure.requested":
            found[facts["request_id"]] = _asked(entry, now_us)
        else:
            key = facts.get("request_id") or facts["erasure_id"]
            asked = found.get(key, Erasure(_what(facts), "confirmed", request_id=facts.get("request_id")))
            found[key] = _decided(asked, entry)
    return [*reversed(found.values())]


def _asked(entry: Entry, now_us: int) -> Erasure:
    facts = entry.facts
    return Erasure(
        _what(facts),
        "asked" if now_us < facts["expires_us"] else "expired",
        request_id=facts["request_id"],
        asked_by=entry.actor,
        asked_us=entry.at_us,
        expires_us=facts["expires_us"],
    )


def _decided(asked: Erasure, entry: Entry) -> Erasure:
    decided = replace(
        asked,
        state="confirmed",
        erasure_id=entry.facts["erasure_id"],
        decided_by=entry.actor,
        decided_us=entry.at_us,
    )
    if entry.finished is None:
        return decided
    figures = {name: entry.finished[name] for name in ("content_count", "size_bytes")}
    return replace(decided, state="done", finished_us=entry.finished_us, **figures)


def _what(facts: Mapping[str, Any]) -> What:
    about = (facts.get(name) for name in ("of_session_id", "of_run_id", "digest", "before_us"))
    return What(str(facts.get("scope", "RETENTION")), str(facts["reason"]), *about)
