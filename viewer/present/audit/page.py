"""What the audit pages show, put together; the templates only place it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ledger.audit.errors import InvalidCheckpoint, InvalidNote
from ledger.audit.notes.checkpoint import Checkpoint
from ledger.audit.notes.notes import ID_BYTES, split_note
from ledger.audit.signing.receipts import Receipt
from ledger.audit.signing.stored import StoredCheckpoint
from ledger.verifying import VerifyReport, telling
from ledger.words.codes import plain
from ledger.words.format import count, duration
from viewer.audit.verification import UnderWay, Verified
from viewer.present.audit.proof_path import ProofPath, proof_path
from viewer.site import Site
from viewer.words import gettext as _
from viewer.words import ngettext


@dataclass(frozen=True, slots=True)
class Signature:
    """A line below a note."""

    name: str
    key_id: str


@dataclass(frozen=True, slots=True)
class AuditPage:
    """What vouches for the ledger."""

    ledger_id: str
    event_count: int
    checkpoint: StoredCheckpoint | None
    root: str
    signatures: Sequence[Signature]
    headline: str
    tone: str
    tail: str


def audit_page(ledger_id: str, checkpoint: StoredCheckpoint | None, event_count: int, now_us: int) -> AuditPage:
    """Everything above the lists."""
    if checkpoint is None:
        return AuditPage(
            ledger_id,
            event_count,
            None,
            "",
            (),
            _("Nothing was ever signed"),
            "warn",
            ngettext(
                "Nothing outside the ledger vouches for its %(num)s event.",
                "Nothing outside the ledger vouches for its %(num)s events.",
                event_count,
            ),
        )
    age_us = now_us - checkpoint.created_us
    when = _("%(time)s ago", time=duration(age_us)) if age_us >= 1_000_000 else _("just now")
    if event_count < checkpoint.size:
        headline, tone = _("The log is shorter than what was signed"), "bad"
        tail = ngettext(
            "There is %(num)s event, and %(signed)s were signed.",
            "There are %(num)s events, and %(signed)s were signed.",
            event_count,
            signed=count(checkpoint.size),
        )
    else:
        beyond = event_count - checkpoint.size
        headline = ngettext(
            "%(num)s event signed %(when)s", "%(num)s events signed %(when)s", checkpoint.size, when=when
        )
        tone = "quiet" if beyond else "good"
        tail = ngettext(
            "%(num)s event came since, for which nothing vouches yet.",
            "%(num)s events came since, for which nothing vouches yet.",
            beyond,
        )
        tail = tail if beyond else _("Nothing came since.")
    return AuditPage(
        ledger_id, event_count, checkpoint, checkpoint.root.hex(), signatures_of(checkpoint.note), headline, tone, tail
    )


def signatures_of(note: str) -> Sequence[Signature]:
    """Who is said to have signed; none where the note is none."""
    try:
        return [Signature(name, data[:ID_BYTES].hex()) for name, data in split_note(note)[1]]
    except InvalidNote:
        return ()


@dataclass(frozen=True, slots=True)
class VerificationPage:
    """How far a verification is, and what the last one came to."""

    under_way: UnderWay | None
    percent: int | None
    last: Verified | None
    took: str
    looked_at: str
    verdict: str
    findings: Sequence[str]
    by_kind: Sequence[tuple[str, int]]
    notes: Sequence[str]


def verification_page(under_way: UnderWay | None, last: Verified | None) -> VerificationPage:
    """Everything for the template, in the words of `tachograph verify`."""
    percent = None
    if under_way is not None and under_way.of:
        percent = min(100, 100 * under_way.done // under_way.of)
    report: VerifyReport | None = None if last is None else last.report
    took = "" if last is None else duration(max(0, last.ended_us - last.started_us))
    if report is None:
        return VerificationPage(under_way, percent, last, took, "", "", (), (), ())
    kinds = Counter(plain(finding.problem) for finding in report.findings)
    return VerificationPage(
        under_way,
        percent,
        last,
        took,
        telling.looked_at(report),
        telling.verdict(report),
        list(telling.finding_lines(report)),
        kinds.most_common(),
        [*telling.outdated_lines(report), *telling.tail_lines(report)],
    )


@dataclass(frozen=True, slots=True)
class RunProofPage:
    """What proves that the log holds one run."""

    session_id: str
    run_id: str
    receipt: Receipt | None
    checkpoint: Checkpoint | None
    path: ProofPath | None
    signatures: Sequence[Signature]
    leads_to_root: bool
    trace_href: str


def run_page(session_id: str, run_id: str, receipt: Receipt | None, site: Site) -> RunProofPage:
    """Everything for the template."""
    href = site.run(session_id, run_id)
    try:
        claim = None if receipt is None else receipt.proof.checkpoint.claim
    except (InvalidNote, InvalidCheckpoint):
        claim = None
    if receipt is None or claim is None:
        return RunProofPage(session_id, run_id, receipt, None, None, (), False, href)
    path = proof_path(receipt.link, receipt.proof, claim.size)
    return RunProofPage(
        session_id,
        run_id,
        receipt,
        claim,
        path,
        signatures_of(receipt.proof.checkpoint.note),
        path.steps[-1].hash == claim.root.hex(),
        href,
    )
