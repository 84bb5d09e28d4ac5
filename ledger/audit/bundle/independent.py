"""Checks a bundle with nothing but Python and `cryptography`, from what ledger/audit/README.md says of bundles alone.

    python independent.py FILE [KEYS]

KEYS is a file with the public keys that you trust, one on each line; without it the keys in the bundle are taken, and
trust rests on the bundle. Exit code 0: all is as claimed; 1: something is not; 2: this is no bundle, or too large.
Two members are compared with the manifest only: rows.jsonl, since what events add up to takes the whole program, and
consistency.txt, since the root of the smaller log is found from the same hashes as that of the larger one.
"""

import base64
import hashlib
import json
import struct
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

BYTES_MAX = 1 << 30
CONTENTS = ("answer", "comment", "error", "input", "output", "query", "rationale")


def expect(is_so: object, what: str) -> None:
    """Stop unless it is so."""
    if not is_so:
        raise ValueError(what)


def sha256(*parts: bytes) -> bytes:
    """SHA-256 of the parts, one after another."""
    return hashlib.sha256(b"".join(parts)).digest()


def members_of(path: str) -> dict[str, bytes]:
    """The members of the zip, which may be of 1 GiB at most."""
    with zipfile.ZipFile(path) as archive:
        sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
        expect(len(sizes) == len(archive.infolist()), "two members of one name")
        expect(all(entry.compress_type in (0, 8) for entry in archive.infolist()), "a strange packing")
        expect(sum(sizes.values()) <= BYTES_MAX, "it unpacks to too much")
        return {name: archive.read(name) for name in sizes}


def parsed(line: bytes) -> dict[str, Any]:
    """A JSON object, which must be written in the one way that the format has."""
    value: dict[str, Any] = json.loads(line)
    expect(json.dumps(value, sort_keys=True, separators=(",", ":")).encode() == line, "JSON that is not canonical")
    return value


def opened(note: str, keys: str) -> tuple[str, str, bytes]:
    """Origin, size and root of a checkpoint that a trusted key signed."""
    text, signed_count = note[: note.rindex("\n\n") + 1], 0
    for name, key_id, encoded in (line.split("+", 2) for line in keys.splitlines()):
        key = base64.b64decode(encoded, validate=True)
        expect(sha256(name.encode(), b"\n", key)[:4].hex() == key_id and key[0] == 1, "a key that is none")
        for line in note[len(text) + 1 :].splitlines():
            signature = base64.b64decode(line.split(" ")[2], validate=True)
            if line.startswith(f"— {name} ") and signature[:4].hex() == key_id:
                Ed25519PublicKey.from_public_bytes(key[1:]).verify(signature[4:], text.encode())
                signed_count += 1
    expect(signed_count, "no trusted key signed the checkpoint")
    return text.split("\n")[0], text.split("\n")[1], base64.b64decode(text.split("\n")[2], validate=True)


def lines(members: dict[str, bytes], name: str) -> list[bytes]:
    """The lines of a member, without their ends."""
    return members.get(name, b"").split(b"\n")[:-1]


class Tree:
    """Leaves from left to right, and hashes of complete subtrees for what lies between them (RFC 6962)."""

    def __init__(self, hashes: bytes, roots: dict[int, bytes]) -> None:
        self.hashes, self.used, self.size, self.roots = hashes, 0, 0, roots
        self.stack: list[tuple[int, bytes]] = []

    def push(self, level: int, node: bytes) -> None:
        """The next complete subtree of `2**level` leaves."""
        self.size += 1 << level
        while self.stack and self.stack[-1][0] == level:
            node, level = sha256(b"\1", self.stack.pop()[1], node), level + 1
        self.stack.append((level, node))

    def reach(self, size: int) -> None:
        """Fill up to `size` leaves with the largest subtrees that fit, and compare roots on the way."""
        for stop in sorted(stop for stop in {*self.roots, size} if stop <= size):
            expect(stop >= self.size, "places that do not ascend")
            while self.size < stop:
                level = (stop - self.size).bit_length() - 1
                level = min(level, (self.size & -self.size).bit_length() - 1) if self.size else level
                self.used += 32
                expect(self.used <= len(self.hashes), "too few hashes of what lies between the events")
                self.push(level, self.hashes[self.used - 32 : self.used])
            if stop in self.roots:
                root = self.stack[-1][1] if self.stack else sha256(b"")
                for _, left in self.stack[-2::-1]:
                    root = sha256(b"\1", left, root)
                expect(self.roots.pop(stop) == root, f"the root of {stop} leaves is not the checkpoint's")


def check_events(members: dict[str, bytes], manifest: dict[str, Any], tree: Tree | None) -> list[Any]:
    """What the events say, once every link, every place in the log, and its roots are found to be right."""
    heads = {stream.decode(): (int(seq), link) for stream, seq, link in map(bytes.split, lines(members, "heads.txt"))}
    claim: Any = manifest.get("tree")
    is_run, events = manifest["kind"] == "run", list[Any]()
    for line in lines(members, "events.txt"):
        place, seq, recorded_us, link, body = line.split(b" ", 4)
        fields = json.loads(body)
        stream, session, run = (fields.get(name) for name in ("stream_id", "session_id", "run_id"))
        expect(stream == (f"r:{run}" if run else f"s:{session}" if session else "sys"), "an event of a strange stream")
        expect(not is_run or (session, run) == (manifest["session_id"], manifest["run_id"]), "an event of another run")
        genesis = sha256(b"tachograph/genesis/v1\0", manifest["ledger_id"].encode(), b"\0", stream.encode())
        last, previous = heads.get(stream, (0, genesis.hex().encode()))
        times = int(seq).to_bytes(8, "big") + int(recorded_us).to_bytes(8, "big")
        hashed = sha256(b"tachograph/body/v1\0", body)
        hashed = sha256(b"tachograph/link/v1\0", bytes.fromhex(previous.decode()), times, hashed)
        expect(int(seq) == last + 1 and hashed.hex().encode() == link, f"event {len(events) + 1} breaks its chain")
        heads[stream] = int(seq), link
        events.append(fields)
        if tree is not None and len(events) <= claim["covered_count"]:
            expect(is_run or int(place) == claim["earlier_size"] + len(events) - 1, "a missing place of the log")
            tree.reach(int(place))
            tree.push(0, sha256(b"\0", hashed))
    if tree is not None:
        tree.reach(claim["size"])
        expect(not tree.roots and tree.used == len(tree.hashes), "a root not reached, or hashes that fill no place")
        least = claim["covered_count"] if is_run else claim["size"] - claim["earlier_size"]
        expect(len(events) >= least, "events that are missing")
    expect(len(events) == manifest["event_count"], "another number of events than the manifest says")
    return events


def check_contents(members: dict[str, bytes], events: list[Any], is_withheld: bool) -> None:
    """Each content is what its digest is of, or is said by an event to be erased."""
    named = {event[f"{name}_digest"] for event in events for name in CONTENTS if f"{name}_digest" in event}
    left = {seq: event["content_count"] for seq, event in enumerate(events, 1) if event.get("stage") == "ROWS"}
    entries = list(map(parsed, lines(members, "contents.jsonl")))
    expect(sorted(named) == [entry["digest"] for entry in entries], "contents that are not those that events name")
    for entry in entries:
        data, state = members.pop(f"content/{entry['digest']}", None), entry["state"]
        expect((data is not None) == (state == "stored"), "a content in another state than is said")
        if state == "erased":
            left[entry["erased_seq"]] -= 1
        expect(("salt" in entry) == (state != "erased" and not is_withheld), "a salt too many or too few")
        if data is not None:
            domain, media_type = b"tachograph/content/v1\0", entry["media_type"].encode()
            digest = sha256(domain, bytes.fromhex(entry["salt"]), media_type, b"\0", data).hex()
            expect((digest, len(data)) == (entry["digest"], entry["size_bytes"]), f"content {entry['digest']} differs")
    expect(not any(left.values()), "not as many contents erased as events say")


def check(path: str, trusted: str) -> str:
    """What was found to be right; some error for the first thing that is not."""
    members = members_of(path)
    manifest = parsed(members.pop("manifest.json"))
    expect((manifest["format"], manifest["version"]) == ("tachograph-bundle", 1), "another format")
    listed = {member["name"]: (member["sha256"], member["size_bytes"]) for member in manifest["members"]}
    found = {name: (sha256(data).hex(), len(data)) for name, data in members.items() if "/" not in name}
    expect(listed == found, "members that are not those of the manifest")
    tree, claim, vouching = None, manifest.get("tree"), "no checkpoint vouches for them"
    expect(claim is not None or (manifest["kind"] == "run" and not trusted), "no checkpoint, so nobody vouches")
    if claim is not None:
        notes = {claim["size"]: "checkpoint.txt"}
        if claim["earlier_size"]:
            notes = {claim["earlier_size"]: "earlier-checkpoint.txt"} | notes
        roots = {}
        for size, name in notes.items():
            origin, signed_size, roots[size] = opened(members[name].decode(), trusted or members["keys.txt"].decode())
            expect((origin, signed_size) == (claim["origin"], str(size)), f"{name} is of another log or size")
        tree = Tree(members["subtrees.bin"], roots)
        vouching = f"{claim['covered_count']} of them are in the log of {claim['size']} events signed as {origin!a}"
    events = check_events(members, manifest, tree)
    if manifest["kind"] == "run":
        check_contents(members, events, manifest["content"] == "withheld")
    expect(not any("/" in name for name in members), "contents that no index has")
    return f"{len(events)} events are linked; {vouching}"


def main(path: str, keys_path: str | None = None) -> int:
    """The exit code."""
    try:
        print(check(path, Path(keys_path).read_text() if keys_path else ""))
    except (EOFError, OSError, RuntimeError, struct.error, zipfile.BadZipFile, zlib.error) as error:
        print(f"this is no bundle: {str(error)!a}", file=sys.stderr)
        return 2
    except (ArithmeticError, AttributeError, InvalidSignature, LookupError, TypeError, ValueError) as error:
        print(f"not as it claims: {type(error).__name__} {str(error)!a}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
