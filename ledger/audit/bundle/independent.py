"""Checks a bundle with nothing but Python and `cryptography`, from what ledger/audit/README.md says of bundles alone.

KEYS has public keys that you trust, one a line; without it, trust rests on the bundle's own. Exit code 0: all is as
claimed; 1: something is not; 2: it could not be checked. Not looked at is what rows.jsonl says, which takes the whole
program, and the two proofs: the roots that they lead to are found from the events.
"""

import base64
import hashlib
import json
import re
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

EVENT = re.compile(rb"(-|%b) (%b) (%b) ([0-9a-f]{64}) (\{[ -~]*\})" % (3 * (b"(?:0|[1-9][0-9]{0,15})",)))
CONTENTS = ("answer", "comment", "error", "input", "output", "query", "rationale")


def expect(is_so: object, what: str) -> None:
    """Stop unless it is so."""
    if not is_so:
        raise ValueError(what)


def sha256(*parts: bytes) -> bytes:
    """SHA-256 of the parts, one after another."""
    return hashlib.sha256(b"".join(parts)).digest()


def parsed(line: bytes) -> dict[str, Any]:
    """A JSON object, which must be written in the one way that the format has."""
    value: dict[str, Any] = json.loads(line)
    written = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    expect(isinstance(value, dict) and written.encode() == line, "JSON that is not written as it should be")
    return value


def opened(note: str, keys: str) -> tuple[str, str, bytes]:
    """Origin, size and root of a checkpoint that a trusted key signed."""
    text, signed_count = note[: note.rindex("\n\n") + 1], 0
    for name, key_id, encoded in (line.split("+", 2) for line in keys.splitlines() if line.strip()):
        key = base64.b64decode(encoded, validate=True)
        expect(sha256(name.encode(), b"\n", key)[:4].hex() == key_id and key[0] == 1, "a key that is none")
        for line in note[len(text) + 1 :].splitlines():
            signature = base64.b64decode(line.split(" ")[2], validate=True)
            if line.startswith(f"— {name} ") and signature[:4].hex() == key_id:
                Ed25519PublicKey.from_public_bytes(key[1:]).verify(signature[4:], text.encode())
                signed_count += 1
    expect(signed_count, "no trusted key signed the checkpoint")
    return text.split("\n")[0], text.split("\n")[1], base64.b64decode(text.split("\n")[2], validate=True)


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
                level = min((stop - self.size).bit_length(), (self.size & -self.size).bit_length() or 64) - 1
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
    named = map(bytes.split, members.get("heads.txt", b"").splitlines())
    heads = {stream.decode(): (int(seq), link) for stream, seq, link in named}
    is_run, claim, events, sessions = manifest["kind"] == "run", manifest.get("tree", {}), list[Any](), dict[str, Any]()
    for line in members["events.txt"].splitlines():
        expect(EVENT.fullmatch(line), f"event {len(events) + 1} is not written as events are")
        place, seq, recorded_us, link, body = line.split(b" ", 4)
        fields = parsed(body)
        own, session, run = (fields.get(name, "") for name in ("stream_id", "session_id", "run_id"))
        expect(own == (f"r:{run}" if run else f"s:{session}" if session else "sys"), "an event of a strange stream")
        expect(sessions.setdefault(own, session) == session, "a stream of two sessions")
        expect(not is_run or (session, run) == (manifest["session_id"], manifest["run_id"]), "an event of another run")
        genesis = sha256(b"tachograph/genesis/v1\0", manifest["ledger_id"].encode(), b"\0", own.encode())
        last, before = heads.get(own, (0, genesis.hex().encode()))
        rest = int(seq).to_bytes(8, "big") + int(recorded_us).to_bytes(8, "big") + sha256(b"tachograph/body/v1\0", body)
        hashed = sha256(b"tachograph/link/v1\0", bytes.fromhex(before.decode()), rest)
        expect(int(seq) == last + 1 and hashed.hex().encode() == link, f"event {len(events) + 1} breaks its chain")
        heads[own] = int(seq), link
        events.append(fields)
        if tree is not None and len(events) <= claim["covered_count"]:
            expect(is_run or int(place) == claim["earlier_size"] + len(events) - 1, "a missing place of the log")
            tree.reach(int(place))
            tree.push(0, sha256(b"\0", hashed))
        elif tree is not None:
            expect(is_run and (place == b"-" or int(place) >= claim["size"]), "an event of the log said to be none")
    if tree is not None:
        tree.reach(claim["size"])
        expect(not tree.roots and tree.used == len(tree.hashes), "a root not reached, or hashes that fill no place")
        least = 0 if is_run else claim["size"] - claim["earlier_size"]
        expect(len(events) >= claim["covered_count"] >= least, "events that are missing")
    expect((len(events), len(heads)) == (manifest["event_count"], len(sessions)), "events or streams that are missing")
    return events


def check_contents(members: dict[str, bytes], events: list[Any], alive: str) -> None:
    """Each content is what its digest is of, or is said by an event to be erased."""
    named = {event[f"{name}_digest"] for event in events for name in CONTENTS if f"{name}_digest" in event}
    kept = {event[f"{name}_digest"] for event in events for name in CONTENTS if event.get(f"{name}_stored")}
    left = {seq: event["content_count"] for seq, event in enumerate(events, 1) if event.get("stage") == "ROWS"}
    entries = list(map(parsed, members["contents.jsonl"].splitlines()))
    expect(sorted(named) == [entry["digest"] for entry in entries], "contents that are not those that events name")
    for entry in entries:
        data, state = members.pop(f"content/{entry['digest']}", None), entry["state"]
        expect(("salt" in entry) == (state != "erased" and alive == "stored"), "a salt too many or too few")
        is_lost = state == "digest_only" and entry["digest"] in kept
        expect(not is_lost and state in (alive, "digest_only", "erased"), "a content that is lost, or in no state")
        expect((data is not None) == (state == "stored"), "a content in another state than is said")
        if state == "erased":
            left[entry["erased_seq"]] -= 1
        if data is not None:
            domain, media_type = b"tachograph/content/v1\0", entry["media_type"].encode()
            digest = sha256(domain, bytes.fromhex(entry["salt"]), media_type, b"\0", data).hex()
            expect((digest, len(data)) == (entry["digest"], entry["size_bytes"]), f"content {entry['digest']} differs")
    expect(not any(left.values()), "not as many contents erased as events say")


def check(path: str, trusted: str | None) -> str:
    """What was found to be right; some error for the first thing that is not."""
    with zipfile.ZipFile(path) as archive:
        sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
        fits = len(sizes) == len(archive.infolist()) and sum(sizes.values()) <= 1 << 30
        expect(fits, "two members of one name, or more than 1 GiB when it is unpacked")
        expect({entry.compress_type for entry in archive.infolist()} <= {0, 8}, "a strange packing")
        members = {name: archive.read(name) for name in sizes}
    manifest = parsed(members.pop("manifest.json"))
    expect((manifest["format"], manifest["version"]) == ("tachograph-bundle", 1), "another format")
    found = {name: data for name, data in sorted(members.items()) if not name.startswith("content/")}
    listed = [{"name": name, "sha256": sha256(data).hex(), "size_bytes": len(data)} for name, data in found.items()]
    expect(manifest["members"] == listed, "members that are not those of the manifest")
    tree, claim, vouching = None, manifest.get("tree"), "no checkpoint vouches for them"
    expect(claim is not None or (manifest["kind"] == "run" and trusted is None), "no checkpoint, so nobody vouches")
    if claim is not None:
        earlier = {claim["earlier_size"]: "earlier-checkpoint.txt"} if claim["earlier_size"] else {}
        roots, keys = {}, members["keys.txt"].decode() if trusted is None else trusted
        for size, name in (earlier | {claim["size"]: "checkpoint.txt"}).items():
            origin, signed_size, roots[size] = opened(members[name].decode(), keys)
            expect((origin, signed_size) == (claim["origin"], str(size)), f"{name} is of another log or size")
        tree = Tree(members["subtrees.bin"], roots)
        vouching = f"{claim['covered_count']} of them are in the log of {claim['size']} events signed as {origin!a}"
        vouching += " by a key of its own, on which trust rests" if trusted is None else " by a key of yours"
    events = check_events(members, manifest, tree)
    if manifest["kind"] != "period":
        check_contents(members, events, {"included": "stored", "withheld": "withheld"}[manifest["content"]])
    expect(not any(name.startswith("content/") for name in members), "contents that no index has")
    return f"{len(events)} events are linked; {vouching}"


def main(*arguments: str) -> int:
    """The exit code."""
    if len(arguments) not in (1, 2) or any(argument.startswith("-") for argument in arguments):
        print("usage: python independent.py FILE [KEYS], of which neither may begin with -", file=sys.stderr)
        return 2
    subject = arguments[-1]
    try:
        trusted = Path(subject).read_bytes() if arguments[1:] else None
        if trusted is not None and b"+" not in trusted:
            raise EOFError("it has no keys")
        subject = arguments[0]
        print(check(subject, None if trusted is None else trusted.decode("utf-8", "replace")))
    except (EOFError, OSError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        print(f"{subject!a} cannot be read: {str(error)!a}", file=sys.stderr)
        return 2
    except (ArithmeticError, AttributeError, InvalidSignature, LookupError, TypeError, ValueError) as error:
        print(f"not as it claims: {type(error).__name__} {str(error)!a}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
