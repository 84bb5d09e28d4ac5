"""The contents of a run in a bundle: their index, and whether each is what its events' digest is of (SPEC E10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.content import CONTENT_DOMAIN, MAX_CONTENT_BYTES
from harness.events.base import Digest
from ledger.audit.bundle import limits
from ledger.audit.bundle.errors import BundleWrong
from ledger.audit.bundle.manifest import CONTENT_FOLDER, CONTENTS, RunManifest
from ledger.audit.bundle.reading import Archive
from ledger.stored_events import CONTENT_NAMES

_STORED_BY_DIGEST = {f"{name}_digest": f"{name}_stored" for name in CONTENT_NAMES}
State = Literal["stored", "withheld", "digest_only", "erased"]


class ContentEntry(BaseModel):
    """A line of the index."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    digest: Digest
    erased_seq: Annotated[int, Field(ge=1)] | None = None
    """The event that says that it was erased."""
    media_type: Annotated[str, Field(pattern=r"^[ -~]{0,255}$")]
    salt: Digest | None = None
    """Of what is stored, and of a digest alone, so that whoever has the text can show that it is this one."""
    size_bytes: Annotated[int, Field(ge=0)]
    state: State

    def line(self) -> bytes:
        """As it stands in the index, with its end."""
        return orjson.dumps(self.model_dump(exclude_none=True), option=orjson.OPT_SORT_KEYS) + b"\n"


class NamedContents:
    """What a run's events say of its contents."""

    def __init__(self) -> None:
        self.is_stored: dict[str, bool] = {}
        """By digest, whether an event says that the bytes are stored."""
        self.erased_counts: dict[int, int] = {}
        """How many contents were erased, by the number of the event that says so."""

    def add(self, seq: int, fields: Mapping[str, object]) -> None:
        """The next event."""
        for key in fields.keys() & _STORED_BY_DIGEST.keys():
            digest = fields[key]
            if isinstance(digest, str):
                is_stored = fields.get(_STORED_BY_DIGEST[key]) is True
                self.is_stored[digest] = is_stored or self.is_stored.get(digest, False)
        if fields.get("type") == "content.erased" and fields.get("stage") == "ROWS":
            count = fields.get("content_count")
            self.erased_counts[seq] = count if isinstance(count, int) else 0


def check_contents(archive: Archive, manifest: RunManifest, named: NamedContents) -> Counter[str]:
    """How many contents there are of each state; `BundleWrong` for the first that is not as the events say."""
    is_withheld = manifest.content == "withheld"
    counts: Counter[str] = Counter()
    erased: Counter[int | None] = Counter()
    last = ""
    for line in archive.lines(CONTENTS, limits.MAX_INDEX_LINE_BYTES, manifest.digest_of(CONTENTS)):
        entry = _entry_of(line)
        place = f"content {entry.digest}"
        said = named.is_stored.pop(entry.digest, None)
        if entry.digest <= last or said is None:
            raise BundleWrong("content_differs", place, "no event names it, or it is named twice or out of order")
        last = entry.digest
        counts[entry.state] += 1
        problem = _problem_of(entry, named, said_to_be_stored=said, is_withheld=is_withheld)
        if problem is not None:
            raise BundleWrong("content_differs", place, problem)
        if entry.state == "erased":
            erased[entry.erased_seq] += 1
        elif entry.state == "stored":
            _check_data(archive, entry, place)
    if named.is_stored:
        raise BundleWrong(
            "content_missing", f"content {min(named.is_stored)}", "events name it, and the index does not"
        )
    if dict(erased) != {seq: count for seq, count in named.erased_counts.items() if count}:
        raise BundleWrong("content_differs", CONTENTS, "not as many contents are erased as the events say")
    if sum(name.startswith(CONTENT_FOLDER) for name in archive.entries) != counts["stored"]:
        raise BundleWrong("content_differs", CONTENTS, "there are contents that the index does not have as stored")
    return counts


def _entry_of(line: bytes) -> ContentEntry:
    try:
        fields = orjson.loads(line)
        entry = ContentEntry.model_validate(fields)
    except orjson.JSONDecodeError:
        raise BundleWrong("content_differs", CONTENTS, "a line is no JSON") from None
    except ValidationError as error:
        raise BundleWrong("content_differs", CONTENTS, f"a line is wrong ({error.errors()[0]['msg']})") from None
    if orjson.dumps(fields, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE) != line or None in fields.values():
        raise BundleWrong("content_differs", CONTENTS, "a line is not written as this index is")
    return entry


def _problem_of(entry: ContentEntry, named: NamedContents, *, said_to_be_stored: bool, is_withheld: bool) -> str | None:
    if entry.state == "digest_only" and said_to_be_stored:
        return "an event says that it is stored, and it is not"
    has_salt = entry.state in ("stored", "digest_only") and not is_withheld
    if (entry.salt is not None) != has_salt:
        return "it has a salt and should not, or has none and should"
    if entry.state == ("stored" if is_withheld else "withheld"):
        return "the manifest says otherwise of whether contents are withheld"
    if (entry.erased_seq is not None) != (entry.state == "erased"):
        return "that it was erased is said in part only"
    if entry.state == "erased" and entry.erased_seq not in named.erased_counts:
        return "it is said to be erased, and no event says so"
    return None


def _check_data(archive: Archive, entry: ContentEntry, place: str) -> None:
    name = CONTENT_FOLDER + entry.digest
    archive.require(name, MAX_CONTENT_BYTES)
    assert entry.salt is not None
    hashed = sha256(CONTENT_DOMAIN + bytes.fromhex(entry.salt) + entry.media_type.encode("ascii") + b"\0")
    size_bytes = 0
    for chunk in archive.chunks(name):
        hashed.update(chunk)
        size_bytes += len(chunk)
    if size_bytes != entry.size_bytes or hashed.hexdigest() != entry.digest:
        raise BundleWrong("content_differs", place, "it is not what its digest is of")
