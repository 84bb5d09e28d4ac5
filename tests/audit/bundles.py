"""Bundles made of scripted runs, without any database: a log in memory, its tree, and a key that signs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

import orjson

from harness import events as e
from harness.content import SealedContent
from harness.ids import run_stream
from harness.journal import Submission
from ledger.append.folding import fold
from ledger.audit.bundle import limits
from ledger.audit.bundle import manifest as names
from ledger.audit.bundle.contents import ContentEntry
from ledger.audit.bundle.event_lines import EventLine, head_line
from ledger.audit.bundle.making import BundleWriter, SignedTree
from ledger.audit.bundle.manifest import PeriodManifest, RunManifest
from ledger.audit.bundle.reading import Archive
from ledger.audit.bundle.writing import ArchiveWriter
from ledger.audit.notes.checkpoint import Checkpoint
from ledger.audit.notes.notes import SigningKey
from ledger.audit.tree.merkle import Node, leaf_hash
from ledger.bytes import body_hash, body_of, genesis_link, next_link
from tests.audit.trees import root_of
from tests.ledger.scripted import EPOCH_US, ScriptedRun

LEDGER_ID = "ledger-1"
ORIGIN = "example.org/ledger-1"
KEY = SigningKey("example.org/ledger-1", b"\x05" * 32)
OTHER_KEY = SigningKey("example.org/ledger-1", b"\x06" * 32)


class MemoryLog:
    """A log as a ledger would have it."""

    def __init__(self) -> None:
        self.events: list[tuple[str, EventLine]] = []
        self.contents: dict[str, dict[str, SealedContent]] = {}
        self._heads: dict[str, tuple[int, bytes]] = {}

    def append(self, submission: Submission) -> None:
        """Append what a harness would submit."""
        for event in submission.events:
            self.append_event(event)
        kept = self.contents.setdefault(run_stream(submission.run_id), {})
        kept |= {sealed.digest: sealed for sealed in submission.contents}

    def append_event(self, event: e.Event) -> None:
        """Append an event of any stream."""
        stream_id = event.stream_id
        seq, link = self._heads.get(stream_id, (0, genesis_link(LEDGER_ID, stream_id)))
        body, recorded_us = body_of(event), EPOCH_US + len(self.events)
        link = next_link(link, seq + 1, recorded_us, body_hash(body))
        self._heads[stream_id] = seq + 1, link
        self.events.append((stream_id, EventLine(len(self.events), seq + 1, recorded_us, link, body)))

    def read(self, nodes: Sequence[Node]) -> list[bytes]:
        """As a `HashReader`."""
        leaves = [leaf_hash(line.link) for _, line in self.events]
        return [root_of(leaves[node.node_index << node.level : node.node_index + 1 << node.level]) for node in nodes]

    def checkpoint(self, size: int, key: SigningKey = KEY, origin: str = ORIGIN) -> Checkpoint:
        """Of the first events."""
        return Checkpoint(origin, size, root_of(leaf_hash(line.link) for _, line in self.events[:size]))

    def signed_tree(self, size: int, earlier: int = 0, key: SigningKey = KEY) -> SignedTree:
        """What vouches for the first events."""
        signed_earlier = self.checkpoint(earlier).sign(key) if earlier else None
        return SignedTree(self.checkpoint(size).sign(key), [key.verifier], self.read, signed_earlier)


def three_runs(writer: str = "w") -> MemoryLog:
    """Runs that take turns, one of which goes on."""
    log = MemoryLog()
    runs = [ScriptedRun(f"run-{number}", "session-1", writer_id=f"{writer}{number}") for number in (1, 2, 3)]
    for turns in zip(*(run.whole() for run in runs), strict=True):
        for submission in turns:
            log.append(submission)
    log.append(ScriptedRun("run-4", "session-2").start())
    return log


LOG = three_runs()
SIZE = len(LOG.events)
TRUSTED = [KEY.verifier]


def write_run(path: Path, log: MemoryLog, run_id: str = "run-2", tree: SignedTree | None = None, **fields: str) -> Path:
    """The bundle of a run."""
    stream_id, session_id = run_stream(run_id), "session-1"
    events = [line for stream, line in log.events if stream == stream_id]
    run, changes = fold(run_id, None, [line.body for line in events])
    assert run is not None
    is_withheld = fields.get("content") == "withheld"
    contents = sorted(log.contents[stream_id].values(), key=lambda sealed: sealed.digest)
    with path.open("xb+") as file:
        bundle = BundleWriter(file, limits.MAX_RUN_EVENTS)
        bundle.add_events(events)
        steps, tools = sorted(changes.step_rows), sorted(changes.tool_rows)
        bundle.add_rows([run.row, *steps, *tools, *changes.cases.values()])
        stored = () if is_withheld else ((one.digest, one.data) for one in contents if one.data is not None)
        bundle.add_contents([entry_of(sealed, is_withheld=is_withheld) for sealed in contents], stored)
        claim = None if tree is None else bundle.add_tree(tree)
        shared = {"session_id": session_id, "run_id": run_id, "content": "included"} | fields
        bundle.end(RunManifest.model_validate(common(bundle) | shared | {"kind": "run", "tree": claim}))
    return path


def write_period(path: Path, log: MemoryLog, begin: int, end: int, key: SigningKey = KEY) -> Path:
    """The bundle of what is between two sizes of the log."""
    before = dict(log.events[:begin])
    lines = log.events[begin:end]
    with path.open("xb+") as file:
        bundle = BundleWriter(file, limits.MAX_PERIOD_EVENTS)
        bundle.add_events(line for _, line in lines)
        streams = sorted({stream for stream, _ in lines} & before.keys())
        bundle.add_lines(names.HEADS, (head_line(one, before[one].seq, before[one].link) for one in streams))
        claim = bundle.add_tree(log.signed_tree(end, begin, key))
        fields = {"from_us": EPOCH_US + begin, "to_us": EPOCH_US + end, "kind": "period", "tree": claim}
        bundle.end(PeriodManifest.model_validate(common(bundle) | fields))
    return path


def common(bundle: BundleWriter) -> dict[str, object]:
    """What every manifest says."""
    return {
        "format": names.FORMAT,
        "version": names.VERSION,
        "ledger_id": LEDGER_ID,
        "made_by": "tests",
        "made_us": EPOCH_US,
        "event_count": bundle.event_count,
        "members": bundle.members,
    }


def entry_of(sealed: SealedContent, *, is_withheld: bool = False) -> ContentEntry:
    """What the index says of a content."""
    state = "digest_only" if sealed.data is None else "withheld" if is_withheld else "stored"
    fields = {"digest": sealed.digest, "media_type": sealed.media_type, "size_bytes": sealed.size_bytes, "state": state}
    salt = {} if is_withheld else {"salt": sealed.salt.hex()}
    return ContentEntry.model_validate(fields | salt)


Members = dict[str, bytes]


def members_of(path: Path) -> Members:
    """What is in a bundle."""
    with path.open("rb") as file:
        archive = Archive(file)
        return {name: b"".join(archive.chunks(name)) for name in archive.entries}


def changed_line(name: str, number: int, old: bytes, new: bytes) -> Callable[[Members], Members]:
    """Whoever writes something else into a line, once."""

    def change(members: Members) -> Members:
        lines = members[name].splitlines(keepends=True)
        assert old in lines[number]
        lines[number] = lines[number].replace(old, new, 1)
        return members | {name: b"".join(lines)}

    return change


def write_members(path: Path, members: Members, *, says: Mapping[str, object] = MappingProxyType({})) -> Path:
    """A bundle as whoever changed it would make it: its manifest is right about members, and says what they like."""
    manifest = orjson.loads(members[names.MANIFEST]) | says
    listed = sorted(name for name in members if not name.startswith(names.CONTENT_FOLDER) and name != names.MANIFEST)
    manifest["members"] = [
        {"name": name, "sha256": sha256(members[name]).hexdigest(), "size_bytes": len(members[name])} for name in listed
    ]
    with path.open("xb+") as file:
        archive = ArchiveWriter(file)
        for name, data in members.items():
            if name != names.MANIFEST:
                archive.add(name, data)
        archive.add(names.MANIFEST, orjson.dumps(manifest, option=orjson.OPT_SORT_KEYS))
        archive.end()
    return path


def chained(lines: Iterable[EventLine], stream_id: str) -> list[bytes]:
    """The lines of a stream's events, numbered and linked anew."""
    link, made = genesis_link(LEDGER_ID, stream_id), []
    for seq, line in enumerate(lines, 1):
        link = next_link(link, seq, line.recorded_us, body_hash(line.body))
        made.append(line._replace(seq=seq, link=link).line())
    return made
