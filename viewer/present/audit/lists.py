"""What was decided about the ledger, as lists of a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.words.codes import plain
from ledger.words.format import count, size
from viewer.audit.history import KINDS, Entry, Kind, Known
from viewer.present.sentence import Moment, Part, Sentence, joined, sentence
from viewer.present.trace.rows import Paging
from viewer.site import Site
from viewer.words import N_, ngettext
from viewer.words import gettext as _

ROWS_PER_PAGE = 50
TITLES: Mapping[Kind, str] = {
    "keys": N_("Signing keys"),
    "erasures": N_("Erasures"),
    "retention": N_("Retention"),
    "restores": N_("Restores"),
    "tokens": N_("Tokens"),
    "accesses": N_("Accesses"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One entry."""

    seq: int
    at_us: int
    what: str
    about: str
    """Names that programs and people chose."""
    told: Sequence[Part | Moment]
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
    facts = {"first": skipped + 1 if shown else 0, "last": last, "total": count(total), "listed": count(len(entries))}
    showing = _("%(first)s–%(last)s of %(total)s", **facts)
    if last == len(entries) < total:
        showing = _("%(first)s–%(last)s of %(total)s; the %(listed)s newest are listed", **facts)
    paging = Paging(
        showing if shown else "",
        site.audit(list=kind, skip=max(0, skipped - ROWS_PER_PAGE) or None) if skipped else None,
        site.audit(list=kind, skip=last) if last < len(entries) else None,
    )
    tabs = [(_(TITLES[each]), site.audit(list=each), known[each].count, each == kind) for each in KINDS]
    return Listed(kind, [_row(entry) for entry in shown], paging, tabs)


def _row(entry: Entry) -> Row:
    facts = entry.facts
    what = {
        "key.created": _("created"),
        "key.rotated": _("rotated"),
        "key.revoked": _("revoked"),
        "erasure.requested": _("asked to erase %(scope)s", scope=plain(str(facts.get("scope")))),
        "erasure.decided": _("erase %(scope)s", scope=plain(str(facts.get("scope")))),
        "retention.decided": _("retention"),
        "ledger.restored": _("restored"),
        "token.created": _("made"),
        "token.revoked": _("revoked"),
        "access.recorded": plain(str(facts.get("action"))),
    }.get(entry.type, entry.type)
    return Row(entry.seq, entry.at_us, what, _about(facts), joined(_told(entry), "; "), entry.actor or "")


def _about(facts: Mapping[str, Any]) -> str:
    if "key_id" in facts:
        return str(facts["key_id"])
    if facts.get("of_session_id"):
        return "/".join(str(facts[key]) for key in ("of_session_id", "of_run_id") if facts.get(key))
    return str(facts.get("token_id") or facts.get("restore_id") or facts.get("erasure_id") or "")


def _told(entry: Entry) -> Iterator[Sentence]:
    facts = entry.facts
    if facts.get("replaced_key_id"):
        yield [_("in place of %(key)s", key=facts["replaced_key_id"])]
    if facts.get("fingerprint"):
        yield [f"SHA-256 {facts['fingerprint']}"]
    if "allowed" in facts:
        yield [_("allowed") if facts["allowed"] else _("refused")]
    if facts.get("grants"):
        yield [_("for %(rights)s", rights=plain(str(facts["grants"])))]
    if facts.get("expires_us") is not None:
        yield sentence(_("until %(time)s"), time=Moment(facts["expires_us"]))
    if facts.get("before_us") is not None:
        yield sentence(_("of runs that ended before %(time)s"), time=Moment(facts["before_us"]))
    if facts.get("reason"):
        yield [plain(str(facts["reason"]))]
    if facts.get("event_count") is not None:
        yield [ngettext("with %(num)s event", "with %(num)s events", facts["event_count"])]
    if facts.get("backup_us") is not None:
        yield sentence(_("from a backup of %(time)s"), time=Moment(facts["backup_us"]))
    if "erasure_id" in facts:
        yield _finished(entry)


def _finished(entry: Entry) -> Sentence:
    done = entry.finished
    if done is None or entry.finished_us is None:
        return [_("not finished")]
    contents = ngettext("%(num)s content", "%(num)s contents", done["content_count"])
    runs = ngettext("%(num)s run", "%(num)s runs", done["run_count"])
    stages = {"ROWS": _("the tables"), "LOG": _("the tables and the log"), "FILE": _("the whole file")}
    return sentence(
        _("finished %(time)s: %(contents)s of %(runs)s, %(size)s, gone from %(place)s"),
        time=Moment(entry.finished_us),
        contents=contents,
        runs=runs,
        size=size(done["size_bytes"]),
        place=stages.get(done["stage"], "?"),
    )
