"""How much is proven of a run, in words that never say more than what was looked at, by whom, when and against what."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ledger.audit.signing.stored import StoredCheckpoint
from ledger.records import RunDetail
from ledger.verifying import Finding, RunCheck
from ledger.words.format import count
from ledger.words.text import shorten
from viewer.present.links import TraceLinks
from viewer.proof import Unchecked
from viewer.words import N_, ngettext
from viewer.words import gettext as _

FINDING_CHARS_MAX = 240
HASH_CHARS = 16
"""Of a checkpoint's root, for comparing it with one's own."""
_WHY = {
    "long": N_("A run of %(number)s events is checked when somebody asks."),
    "busy": N_("This server is checking other runs; ask again in a moment."),
    "slow": N_("The check took too long and was given up."),
    "unreadable": N_("The ledger could not be read for it."),
}


@dataclass(frozen=True, slots=True)
class Command:
    """What somebody can do himself, and what that is for."""

    purpose: str
    text: str


@dataclass(frozen=True, slots=True)
class Seal:
    """The proof state."""

    tone: str
    """`holds`, `tail` where events wait for a checkpoint, `broken`, or `open` where nothing was checked."""
    headline: str
    at_us: int | None
    """When this server checked it."""
    scope: str
    """What was looked at, and against what."""
    caveats: tuple[str, ...]
    broken_seq: int | None
    """The first event that is wrong."""
    check_href: str
    """Checks it now."""
    commands: tuple[Command, ...]


def seal(found: RunCheck | Unchecked, run: RunDetail, links: TraceLinks) -> Seal:
    """The seal on the verdict."""
    commands = tuple(_commands(f"{links.session_id}/{links.run_id}", found))
    if isinstance(found, Unchecked):
        why = _(_WHY[found.why], number=count(run.event_count))
        return Seal("open", _("Links not verified here"), None, "", (why,), None, links.verifying, commands)
    made = Seal(
        tone="holds",
        headline=_("Links hold"),
        at_us=found.checked_us,
        scope=_scope(found),
        caveats=tuple(_caveats(found)),
        broken_seq=None,
        check_href=links.verifying,
        commands=commands,
    )
    if not found.holds:
        first = found.findings[0]
        told = tuple(_told(found.findings))
        return replace(made, tone="broken", headline=_("Does not hold"), caveats=told, broken_seq=first.seq)
    if found.anchored_count < found.event_count:
        return replace(made, tone="tail", headline=_tail(found))
    return made


def _scope(found: RunCheck) -> str:
    looked_at = [ngettext("%(num)s event", "%(num)s events", found.event_count)]
    if found.content_count:
        looked_at.append(ngettext("%(num)s content", "%(num)s contents", found.content_count))
    if found.row_count:
        looked_at.append(ngettext("%(num)s row", "%(num)s rows", found.row_count))
    things = ", ".join(looked_at)
    if found.checkpoint is None:
        return _("%(things)s, against no checkpoint", things=things)
    return _("%(things)s, against %(checkpoint)s", things=things, checkpoint=_name(found.checkpoint))


def _name(checkpoint: StoredCheckpoint) -> str:
    return _("checkpoint %(size)s of %(log)s", size=count(checkpoint.size), log=shorten(checkpoint.origin, 80))


def _tail(found: RunCheck) -> str:
    if found.checkpoint is None:
        return _("Links hold, not anchored")
    return ngettext(
        "Links hold, tail not anchored: %(num)s event since the checkpoint",
        "Links hold, tail not anchored: %(num)s events since the checkpoint",
        found.event_count - found.anchored_count,
    )


def _caveats(found: RunCheck) -> Iterator[str]:
    if found.checkpoint is None:
        yield _("No checkpoint: this ledger signs none, so whoever can write it can write all of it anew.")
    else:
        root = found.checkpoint.root.hex()[:HASH_CHARS]
        yield _(
            "The root of that checkpoint begins %(root)s. Its signature is not checked here: compare it with one that "
            "was kept elsewhere.",
            root=root,
        )
    if found.is_outdated:
        yield _("Its rows were folded by an earlier version; tachograph rebuild makes them anew.")
    yield _("Who audits need not believe this server.")


def _told(findings: tuple[Finding, ...]) -> Iterator[str]:
    first = findings[0]
    said = shorten(first.detail, FINDING_CHARS_MAX)
    if first.seq is not None:
        yield _("Event %(seq)s: %(said)s (%(problem)s).", seq=count(first.seq), said=said, problem=first.problem)
    else:
        yield f"{said[:1].upper() + said[1:]} ({first.problem})."
    if len(findings) > 1:
        yield ngettext("There is %(num)s further finding.", "There are %(num)s further findings.", len(findings) - 1)
    yield _("What this page shows of the run may not be what was recorded.")


def _commands(path: str, found: RunCheck | Unchecked) -> Iterator[Command]:
    yield Command(_("This run"), f"tachograph verify {path} --db LEDGER")
    if isinstance(found, RunCheck) and found.checkpoint is None:
        yield Command(_("Begin to sign"), "tachograph key create --db LEDGER")
        yield Command(_("Then keep this elsewhere"), "tachograph checkpoint --db LEDGER --output CHECKPOINT")
    else:
        whole = "tachograph verify --db LEDGER --checkpoint CHECKPOINT --key PUBLIC-KEY"
        yield Command(_("All of it, against a checkpoint that was kept elsewhere"), whole)
