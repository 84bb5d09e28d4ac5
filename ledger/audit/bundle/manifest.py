"""What a bundle says of itself: nothing of it is believed before it was checked against events, tree and signature."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from harness.events.base import MAX_SAFE_INTEGER, Digest, Id
from harness.ids import run_stream
from ledger.audit.bundle import limits
from ledger.audit.bundle.errors import InvalidBundle

FORMAT = "tachograph-bundle"
VERSION = 1

MANIFEST = "manifest.json"
EVENTS = "events.txt"
SUBTREES = "subtrees.bin"
CHECKPOINT = "checkpoint.txt"
EARLIER = "earlier-checkpoint.txt"
CONSISTENCY = "consistency.txt"
PROOF = "last-event.tlog-proof"
KEYS = "keys.txt"
CONTENTS = "contents.jsonl"
ROWS = "rows.jsonl"
HEADS = "heads.txt"
CONTENT_FOLDER = "content/"

Line = Annotated[str, Field(pattern=r"^[ -~]{1,256}$")]
Count = Annotated[int, Field(ge=0, le=MAX_SAFE_INTEGER)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class Member(_Part):
    """One member; contents are not among them, as their index names each by its own digest."""

    name: Literal[
        "checkpoint.txt",
        "consistency.txt",
        "contents.jsonl",
        "earlier-checkpoint.txt",
        "events.txt",
        "heads.txt",
        "keys.txt",
        "last-event.tlog-proof",
        "rows.jsonl",
        "subtrees.bin",
    ]
    sha256: Digest
    size_bytes: Count


class TreeClaim(_Part):
    """Where in a log the events are."""

    origin: Line
    """Of the checkpoint."""
    size: Count
    """Of the log at the checkpoint."""
    earlier_size: Count = 0
    """Of the log at the checkpoint before; 0 where there is none: every log begins empty."""
    covered_count: Count
    """Events that the checkpoint vouches for: the first so many."""


class _Manifest(_Part):
    format: Literal["tachograph-bundle"]
    version: Literal[1]
    ledger_id: Id
    made_by: Line
    made_us: Count
    """When, by the clock of whoever made it."""
    members: tuple[Member, ...]
    """In the order of their names."""
    tree: TreeClaim | None = None
    """None where no checkpoint vouches for any event."""

    def digest_of(self, name: str) -> str:
        """SHA-256 of a member that `member_names` has."""
        return next(member.sha256 for member in self.members if member.name == name)

    def _tree_names(self) -> set[str]:
        if self.tree is None:
            return set()
        names = {SUBTREES, CHECKPOINT, KEYS}
        if self.tree.covered_count:
            names.add(PROOF)
        return names | {EARLIER, CONSISTENCY} if self.tree.earlier_size else names


class RunManifest(_Manifest):
    """One run."""

    kind: Literal["run"]
    session_id: Id
    run_id: Id
    event_count: Annotated[int, Field(ge=1, le=limits.MAX_RUN_EVENTS)]
    content: Literal["included", "withheld"]

    @property
    def stream_id(self) -> str:
        """The run's stream."""
        return run_stream(self.run_id)

    def member_names(self) -> set[str]:
        """Which members it must have, and no others."""
        return {EVENTS, ROWS, CONTENTS} | self._tree_names()


class PeriodManifest(_Manifest):
    """All events between two checkpoints, which enclose a period."""

    kind: Literal["period"]
    from_us: Count
    to_us: Count
    """Events recorded from the one to before the other are what was asked for; there may be more."""
    event_count: Annotated[int, Field(ge=0, le=limits.MAX_PERIOD_EVENTS)]
    tree: TreeClaim

    def member_names(self) -> set[str]:
        """Which members it must have, and no others."""
        return {EVENTS, HEADS} | self._tree_names()


Manifest = RunManifest | PeriodManifest
_ADAPTER: TypeAdapter[Manifest] = TypeAdapter(Annotated[Manifest, Field(discriminator="kind")])


def manifest_bytes(manifest: Manifest) -> bytes:
    """The manifest as it is stored: sorted keys, no spaces, ASCII, what is not known left out."""
    return orjson.dumps(manifest.model_dump(exclude_none=True), option=orjson.OPT_SORT_KEYS)


def parse_manifest(data: bytes) -> Manifest:
    """What `manifest_bytes` made the bytes of; `InvalidBundle` for anything else."""
    try:
        fields: Any = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise InvalidBundle(f"has a manifest that is no JSON ({error.msg})") from None
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise InvalidBundle(f"has a manifest that is not that of a {FORMAT}")
    if fields.get("version") != VERSION:
        raise InvalidBundle(f"is of a version that this program does not know; it knows {VERSION}")
    try:
        # JSON has no tuples.
        manifest = _ADAPTER.validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InvalidBundle(f"has a manifest that is wrong at {place} ({first['msg']})") from None
    if manifest_bytes(manifest) != data:
        raise InvalidBundle("has a manifest that is not written as manifests are")
    return manifest
