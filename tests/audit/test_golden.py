"""The bytes of proofs never change: golden vectors, proven by our code and by little more than a hash function."""

import base64
import hashlib
import json
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ledger.audit.notes.checkpoint import Checkpoint, SignedCheckpoint
from ledger.audit.notes.notes import SigningKey
from ledger.audit.notes.proofs import InclusionProof
from ledger.audit.signing.receipts import Receipt
from ledger.audit.tree.merkle import consistency_path, inclusion_path, leaf_hash, verify_consistency
from ledger.audit.tree.tiles import tile_of
from tests.audit.trees import in_memory, mth, root_of

FOLDER = Path(__file__).parent.parent / "golden"
GOLDEN = json.loads((FOLDER / "proof_v1.json").read_text())
EVENTS = [event for stream in json.loads((FOLDER / "v1.json").read_text())["streams"] for event in stream["events"]]
LINKS = [bytes.fromhex(leaf["link"]) for leaf in GOLDEN["leaves"]]
KEY = SigningKey.parse(GOLDEN["key"]["private"])


def test_the_leaves_are_the_links_of_the_golden_events():
    assert [leaf["link"] for leaf in GOLDEN["leaves"]] == [event["link"] for event in EVENTS]
    assert [leaf["hash"] for leaf in GOLDEN["leaves"]] == [leaf_hash(link).hex() for link in LINKS]


def test_every_root_is_that_of_the_first_leaves():
    assert GOLDEN["roots"] == [root_of(map(leaf_hash, LINKS[:size])).hex() for size in range(len(LINKS) + 1)]
    assert GOLDEN["roots"] == [mth(LINKS[:size]).hex() for size in range(len(LINKS) + 1)]


def test_the_key_signs_the_golden_checkpoint_byte_for_byte():
    golden = GOLDEN["checkpoint"]
    checkpoint = Checkpoint(golden["origin"], golden["size"], bytes.fromhex(golden["root"]))
    assert checkpoint.text() == golden["text"]
    assert checkpoint.sign(KEY).note == golden["note"]
    assert SignedCheckpoint(golden["note"]).open([KEY.verifier]) == checkpoint
    assert (str(KEY.verifier), KEY.verifier.fingerprint) == (GOLDEN["key"]["public"], GOLDEN["key"]["fingerprint"])


def test_the_golden_proofs_are_made_and_verified():
    read, size = in_memory(LINKS), len(LINKS)
    golden = GOLDEN["inclusion"]
    assert [one.hex() for one in inclusion_path(golden["index"], size, read)] == golden["path"]
    proof = InclusionProof.parse(golden["proof"])
    assert proof.text() == golden["proof"]
    assert proof.verify(LINKS[golden["index"]], [KEY.verifier]).size == size
    receipt = Receipt.parse(golden["proof"])
    assert (receipt.run_id, receipt.seq, receipt.link) == ("run-1", 21, LINKS[20])
    assert receipt.verify([KEY.verifier]).size == size
    golden = GOLDEN["consistency"]
    path = consistency_path(golden["old_size"], golden["new_size"], read)
    assert [one.hex() for one in path] == golden["path"]
    roots = [bytes.fromhex(GOLDEN["roots"][golden[name]]) for name in ("old_size", "new_size")]
    assert verify_consistency(golden["old_size"], roots[0], golden["new_size"], roots[1], path)


def test_the_golden_tile_is_that_of_its_leaves():
    hashes = [leaf_hash(hashlib.sha256(index.to_bytes(8, "big")).digest()) for index in range(256)]
    tile = tile_of(0, 0, hashes)
    assert tile.root.hex() == GOLDEN["tile"]["root"]
    assert hashlib.sha256(tile.hashes).hexdigest() == GOLDEN["tile"]["hashes_sha256"]


def test_the_golden_receipt_can_be_verified_with_nothing_of_ours():
    head, _, note = GOLDEN["inclusion"]["proof"].partition("\n\n")
    _, extra, index_line, *path = head.split("\n")
    text, _, line = note.rpartition("\n\n")
    text += "\n"
    name, key_id, public = GOLDEN["key"]["public"].split("+", 2)
    signature = base64.b64decode(line.split(" ")[2])
    assert line.split(" ")[1] == name
    assert signature[:4].hex() == key_id
    Ed25519PublicKey.from_public_bytes(base64.b64decode(public)[1:]).verify(signature[4:], text.encode())
    _, size, root = text.splitlines()
    index, last = int(index_line.split()[1]), int(size) - 1
    link = bytes.fromhex(json.loads(base64.b64decode(extra.split()[1]))["link"])
    found = hashlib.sha256(b"\0" + link).digest()
    for one in map(base64.b64decode, path):  # RFC 9162, section 2.1.3.2
        if index % 2 or index == last:
            found = hashlib.sha256(b"\1" + one + found).digest()
            while not index % 2 and index:
                index, last = index >> 1, last >> 1
        else:
            found = hashlib.sha256(b"\1" + found + one).digest()
        index, last = index >> 1, last >> 1
    assert (found, last) == (base64.b64decode(root), 0)
