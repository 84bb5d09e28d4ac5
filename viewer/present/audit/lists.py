"""What was decided about the ledger, as lists of a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.words.codes import plain
from ledger.words.format import count, day_time, plural, size
from viewer.audit.history import KINDS, Entry, Kind, Known
from viewer.present.trace.rows import Paging
from viewer.site import Site

ROWS_PER_PAGE = 50
TITLES: Mapping[Kind, str] = {
    "keys": "Signing keys",
    "erasures": "Erasures",
    "retention": "Retention",
    "restores": "Restores",
    "tokens": "Tokens",
    "accesses": "Accesses",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One entry."""

    seq: int
    at_us: int
    what: str
    about: str
    """Names that programs and people chose."""
    told: str
    actor: str


@dataclass(frozen=True, slots=True)
class Listed:
    """One list, a page of it, the newest first."""

    kind: Kind
    rows: Sequence[Row]
    paging: Paging
    tabs: Sequence[tuple[str, str, int, bool]]
    """Each list with its title, address, size, and whether it is the one."""


def listed(known: Mapping[Kind, Known], kind: Kind, skipped: int, site: Site) -> Listed:
    """The page of a list that begins after so many rows."""
    entries = list(reversed(known[kind].newest))
    shown = entries[skipped : skipped + ROWS_PER_PAGE]
    total = known[kind].count
    last = skipped + len(shown)
    showing = f"{skipped + 1 if shown else 0}–{last} of {count(total)}"
    if last == len(entries) < total:
        showing += f"; the {count(len(entries))} newest are listed"
    paging = Paging(
        showing if shown else "",
        site.audit(list=kind, skip=max(0, skipped - ROWS_PER_PAGE) or None) if skipped else None,
        site.audit(list=kind, skip=last) if last < len(entries) else None,
    )
    tabs = [(TITLES[each], site.audit(list=each), known[each].count, each == kind) for each in KINDS]
    return Listed(kind, [_row(entry) for entry in shown], paging, tabs)


def _row(entry: Entry) -> Row:
    facts = entry.facts
    what = {
        "key.created": "created",
        "key.rotated": "rotated",
        "key.revoked": "revoked",
        "erasure.requested": f"asked to erase {plain(str(facts.get('scope')))}",
        "erasure.decided": f"erase {plain(str(facts.get('scope')))}",
        "retention.decided": "retention",
        "ledger.restored": "restored",
        "token.created": "made",
        "token.revoked": "revoked",
        "access.recorded": plain(str(facts.get("action"))),
    }.get(entry.type, entry.type)
    return Row(entry.seq, entry.at_us, what, _about(facts), "; ".join(_told(entry)), entry.actor or "")


def _about(facts: Mapping[str, Any]) -> str:
    if "key_id" in facts:
        return str(facts["key_id"])
    if facts.get("of_session_id"):
        return "/".join(str(facts[key]) for key in ("of_session_id", "of_run_id") if facts.get(key))
    return str(facts.get("token_id") or facts.get("restore_id") or facts.get("erasure_id") or "")


def _told(entry: Entry) -> Iterator[str]:
    facts = entry.facts
    if facts.get("replaced_key_id"):
        yield f"in place of {facts['replaced_key_id']}"
    if facts.get("fingerprint"):
        yield f"SHA-256 {facts['fingerprint']}"
    if "allowed" in facts:
        yield "allowed" if facts["allowed"] else "refused"
    if facts.get("grants"):
        yield f"for {plain(str(facts['grants']))}"
    if facts.get("expires_us") is not None:
        yield f"until {day_time(facts['expires_us'])}"
    if facts.get("before_us") is not None:
        yield f"of runs that ended before {day_time(facts['before_us'])}"
    if facts.get("reason"):
        yield plain(str(facts["reason"]))
    if facts.get("event_count") is not None:
        yield f"with {plural(facts['event_count'], 'event')}"
    if facts.get("backup_us") is not None:
        yield f"from a backup of {day_time(facts['backup_us'])}"
    if "erasure_id" in facts:
        yield _finished(entry)


def _finished(entry: Entry) -> str:
    done = entry.finished
    if done is None or entry.finished_us is None:
        return "not finished"
    what = (
        f"{plural(done['content_count'], 'content')} of {plural(done['run_count'], 'run')}, {size(done['size_bytes'])}"
    )
    stage = {"ROWS": "the tables", "LOG": "the tables and the log", "FILE": "the whole file"}.get(done["stage"], "?")
    return f"finished {day_time(entry.finished_us)}: {what}, gone from {stage}"
