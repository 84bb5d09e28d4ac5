"""How much is proven of a run, in words that never say more than what was looked at, by whom, when and against what."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ledger.audit.signing.stored import StoredCheckpoint
from ledger.records import RunDetail
from ledger.verifying import Finding, RunCheck
from ledger.words.format import count, plural
from ledger.words.text import shorten
from viewer.present.links import TraceLinks
from viewer.proof import Unchecked

FINDING_CHARS_MAX = 240
HASH_CHARS = 16
"""Of a checkpoint's root, for comparing it with one's own."""
_WHY = {
    "long": "A run of {events} is checked when somebody asks.",
    "busy": "This server is checking other runs; ask again in a moment.",
    "slow": "The check took too long and was given up.",
    "unreadable": "The ledger could not be read for it.",
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
        why = _WHY[found.why].format(events=plural(run.event_count, "event"))
        return Seal("open", "Links not verified here", None, "", (why,), None, links.verifying, commands)
    made = Seal(
        tone="holds",
        headline="Links hold",
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
        return replace(made, tone="broken", headline="Does not hold", caveats=told, broken_seq=first.seq)
    if found.anchored_count < found.event_count:
        return replace(made, tone="tail", headline=f"Links hold, {_tail(found)}")
    return made


def _scope(found: RunCheck) -> str:
    looked_at = [plural(found.event_count, "event")]
    looked_at += [plural(found.content_count, "content")] if found.content_count else []
    looked_at += [plural(found.row_count, "row")] if found.row_count else []
    against = "no checkpoint" if found.checkpoint is None else _name(found.checkpoint)
    return f"{', '.join(looked_at)}, against {against}"


def _name(checkpoint: StoredCheckpoint) -> str:
    return f"checkpoint {count(checkpoint.size)} of {shorten(checkpoint.origin, 80)}"


def _tail(found: RunCheck) -> str:
    if found.checkpoint is None:
        return "not anchored"
    return f"tail not anchored: {plural(found.event_count - found.anchored_count, 'event')} since the checkpoint"


def _caveats(found: RunCheck) -> Iterator[str]:
    if found.checkpoint is None:
        yield "No checkpoint: this ledger signs none, so whoever can write it can write all of it anew."
    else:
        root = found.checkpoint.root.hex()[:HASH_CHARS]
        yield (
            f"The root of that checkpoint begins {root}. Its signature is not checked here: compare it with one that "
            "was kept elsewhere."
        )
    if found.is_outdated:
        yield "Its rows were folded by an earlier version; tachograph rebuild makes them anew."
    yield "Who audits need not believe this server."


def _told(findings: tuple[Finding, ...]) -> Iterator[str]:
    first = findings[0]
    where = f"Event {count(first.seq)}: " if first.seq is not None else ""
    said = shorten(first.detail, FINDING_CHARS_MAX)
    yield f"{where}{said if where else said[:1].upper() + said[1:]} ({first.problem})."
    if len(findings) > 1:
        yield f"There are {plural(len(findings) - 1, 'further finding')}."
    yield "What this page shows of the run may not be what was recorded."


def _commands(path: str, found: RunCheck | Unchecked) -> Iterator[Command]:
    yield Command("This run", f"tachograph verify {path} --db LEDGER")
    if isinstance(found, RunCheck) and found.checkpoint is None:
        yield Command("Begin to sign", "tachograph key create --db LEDGER")
        yield Command("Then keep this elsewhere", "tachograph checkpoint --db LEDGER --output CHECKPOINT")
    else:
        whole = "tachograph verify --db LEDGER --checkpoint CHECKPOINT --key PUBLIC-KEY"
        yield Command("All of it, against a checkpoint that was kept elsewhere", whole)
