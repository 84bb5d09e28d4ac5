"""Checkpoints and proofs are those of C2SP, and each can be checked with nothing but a public key (SPEC E9)."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.audit.errors import BadSignature, InvalidCheckpoint, InvalidNote, InvalidProof, NotSigned
from ledger.audit.notes.checkpoint import Checkpoint, SignedCheckpoint
from ledger.audit.notes.notes import SigningKey, sign_note
from ledger.audit.notes.proofs import MAX_PROOF_CHARS, InclusionProof
from ledger.audit.tree.merkle import inclusion_path, leaf_hash
from tests.audit.trees import in_memory, leaves_of, root_of

KEY = SigningKey("log.example/1", bytes(range(32)))
OTHER = SigningKey("log.example/1", bytes(32))
LINKS = leaves_of(11)
ROOT = root_of(map(leaf_hash, LINKS))
CHECKPOINT = Checkpoint("log.example/1", 11, ROOT)
SIGNED = CHECKPOINT.sign(KEY)
PROOF = InclusionProof(6, tuple(inclusion_path(6, 11, in_memory(LINKS))), SIGNED)
ROOT64 = CHECKPOINT.text().split("\n")[2]

# The example of the C2SP document.
EXAMPLE = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"


def test_the_text_of_a_checkpoint_is_that_of_the_document():
    checkpoint = Checkpoint.parse(EXAMPLE)
    assert (checkpoint.origin, checkpoint.size) == ("example.com/behind-the-sofa", 20852163)
    assert checkpoint.text() == EXAMPLE
    assert Checkpoint.parse(EXAMPLE + "more\n").extensions == ("more",)
    assert Checkpoint.parse(EXAMPLE + "more\n").text() == EXAMPLE + "more\n"


def test_a_checkpoint_is_opened_with_the_key_that_signed_it_and_no_other():
    assert SIGNED.open([KEY.verifier], origin="log.example/1") == CHECKPOINT == SIGNED.claim
    with pytest.raises(NotSigned):
        SIGNED.open([OTHER.verifier])
    with pytest.raises(InvalidCheckpoint, match=r"is of log.example/1, not of log.example/2"):
        SIGNED.open([KEY.verifier], origin="log.example/2")
    with pytest.raises(BadSignature):
        SignedCheckpoint(SIGNED.note.replace("\n11\n", "\n12\n")).open([KEY.verifier])
    both = CHECKPOINT.sign(OTHER, KEY)
    assert both.open([KEY.verifier]) == both.open([OTHER.verifier]) == CHECKPOINT


@pytest.mark.parametrize(
    "text",
    [
        "",
        "origin\n",
        "origin\n11\n",
        f"origin\n11\n{ROOT64}",
        f"\n11\n{ROOT64}\n",
        f"origin\n\n{ROOT64}\n",
        f"origin\n011\n{ROOT64}\n",
        f"origin\n-1\n{ROOT64}\n",
        f"origin\n+1\n{ROOT64}\n",
        f"origin\n1 \n{ROOT64}\n",
        f"origin\n1e1\n{ROOT64}\n",
        f"origin\n١\n{ROOT64}\n",
        f"origin\n9223372036854775808\n{ROOT64}\n",
        f"origin\n{'9' * 5000}\n{ROOT64}\n",
        f"origin\n11\n{ROOT64[:-1]}\n",
        f"origin\n11\n{ROOT64[:-4]}\n",
        "origin\n11\nAAAA\n",
        f"origin\n11\n{ROOT64}\n\n",
        f"{'o' * 257}\n11\n{ROOT64}\n",
        f"origin\n11\n{ROOT64}\n" + "more\n" * 17,
    ],
)
def test_what_is_no_checkpoint_is_refused_by_name(text):
    with pytest.raises(InvalidCheckpoint):
        Checkpoint.parse(text)
    if text.endswith("\n"):
        with pytest.raises(InvalidCheckpoint):
            SignedCheckpoint(sign_note(text, KEY)).open([KEY.verifier])


def test_a_proof_is_text_of_the_document_s_form():
    lines = PROOF.text().split("\n")
    assert lines[:2] == ["c2sp.org/tlog-proof@v1", "index 6"]
    assert len(lines[2:6]) == len(PROOF.path)
    assert PROOF.text().endswith(f"\n\n{SIGNED.note}")
    assert InclusionProof.parse(PROOF.text()) == PROOF
    more = dataclasses.replace(PROOF, extra=b"what it is about")
    assert more.text().split("\n")[1] == "extra d2hhdCBpdCBpcyBhYm91dA=="
    assert InclusionProof.parse(more.text()) == more


def test_a_proof_shows_one_event_at_one_place_of_one_log():
    assert PROOF.verify(LINKS[6], [KEY.verifier], origin="log.example/1") == CHECKPOINT
    for link in (*LINKS[:6], *LINKS[7:], b""):
        with pytest.raises(InvalidProof):
            PROOF.verify(link, [KEY.verifier])
    for index in (*range(6), *range(7, 20)):
        with pytest.raises(InvalidProof):
            dataclasses.replace(PROOF, index=index).verify(LINKS[6], [KEY.verifier])
    with pytest.raises(NotSigned):
        PROOF.verify(LINKS[6], [OTHER.verifier])
    with pytest.raises(InvalidCheckpoint):
        PROOF.verify(LINKS[6], [KEY.verifier], origin="log.example/2")


def test_a_log_of_one_event_is_proven_by_no_hash_at_all():
    link = b"\x07" * 32
    proof = InclusionProof(0, (), Checkpoint("o", 1, leaf_hash(link)).sign(KEY))
    assert InclusionProof.parse(proof.text()).verify(link, [KEY.verifier]).size == 1


def test_no_proof_of_which_anything_was_changed_shows_the_event():
    text = PROOF.text()
    for at, character in enumerate(text):
        for changed in (text[:at] + ("1" if character != "1" else "2") + text[at + 1 :], text[:at], text[at + 1 :]):
            with pytest.raises((InvalidProof, InvalidNote, InvalidCheckpoint)):
                InclusionProof.parse(changed).verify(LINKS[6], [KEY.verifier])


HASH64 = ROOT64


@pytest.mark.parametrize(
    "text",
    [
        "",
        "c2sp.org/tlog-proof@v1",
        f"c2sp.org/tlog-proof@v2\nindex 0\n\n{SIGNED.note}",
        f"c2sp.org/tlog-proof@v1\n\n{SIGNED.note}",
        f"c2sp.org/tlog-proof@v1\nindex 0\n{SIGNED.note}",
        f"c2sp.org/tlog-proof@v1\nindex 00\n\n{SIGNED.note}",
        f"c2sp.org/tlog-proof@v1\nindex -1\n\n{SIGNED.note}",
        f"c2sp.org/tlog-proof@v1\nindex {'9' * 30}\n\n{SIGNED.note}",
        f"c2sp.org/tlog-proof@v1\nindex 0\nindex 0\n\n{SIGNED.note}",
        f"c2sp.org/tlog-proof@v1\nindex 0\nextra AAAA\n\n{SIGNED.note}",
        f"c2sp.org/tlog-proof@v1\nextra !\nindex 0\n\n{SIGNED.note}",
        f"c2sp.org/tlog-proof@v1\nextra AAAA\nextra AAAA\nindex 0\n\n{SIGNED.note}",
        f"c2sp.org/tlog-proof@v1\nextra {'AAAA' * 6000}\nindex 0\n\n{SIGNED.note}",
        f"c2sp.org/tlog-proof@v1\nindex 0\nAAAA\n\n{SIGNED.note}",
        f"c2sp.org/tlog-proof@v1\nindex 0\n{HASH64} \n\n{SIGNED.note}",
        "c2sp.org/tlog-proof@v1\nindex 0\n" + f"{HASH64}\n" * 65 + f"\n{SIGNED.note}",
        "c2sp.org/tlog-proof@v1\nindex 0\n" + f"{HASH64}\n" * (MAX_PROOF_CHARS // 40) + f"\n{SIGNED.note}",
    ],
)
def test_what_is_no_proof_is_refused_by_name(text):
    with pytest.raises(InvalidProof):
        InclusionProof.parse(text)


@given(
    st.integers(0, 2**63 - 1),
    st.lists(st.binary(min_size=32, max_size=32), max_size=64),
    st.none() | st.binary(max_size=100),
)
def test_every_proof_comes_back_from_its_text(index, path, extra):
    proof = InclusionProof(index, tuple(path), SIGNED, extra)
    assert InclusionProof.parse(proof.text()) == proof


@given(st.text())
def test_no_text_whatever_raises_anything_but_what_is_said(text):
    for whole in (text, f"c2sp.org/tlog-proof@v1\n{text}", f"c2sp.org/tlog-proof@v1\nindex 3\n{text}\n\n{text}"):
        with pytest.raises((InvalidProof, InvalidNote, InvalidCheckpoint)):
            InclusionProof.parse(whole).verify(LINKS[6], [KEY.verifier])
