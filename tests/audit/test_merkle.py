"""The tree is that of RFC 6962, and no proof that is wrong anywhere is taken for one (SPEC E9)."""

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymerkle import InmemoryTree

from ledger.audit.tree.growing import GrowingTree
from ledger.audit.tree.merkle import (
    Node,
    consistency_path,
    empty_root,
    inclusion_path,
    leaf_hash,
    node_hash,
    nodes_of,
    root_at,
    verify_consistency,
    verify_inclusion,
)
from tests.audit.trees import in_memory, leaves_of, mth, path, subproof

SIZE_MAX = 70
LEAVES = leaves_of(SIZE_MAX)
HASHES = [leaf_hash(leaf) for leaf in LEAVES]
ROOTS = [mth(LEAVES[:size]) for size in range(SIZE_MAX + 1)]
READ = in_memory(LEAVES)

# The test tree of RFC 6962's own implementation.
KNOWN_LEAVES = [
    "",
    "00",
    "10",
    "2021",
    "3031",
    "40414243",
    "5051525354555657",
    "606162636465666768696a6b6c6d6e6f",
]
KNOWN_ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def grown(hashes: Iterable[bytes]) -> bytes:
    tree = GrowingTree()
    tree.extend(list(hashes))
    return tree.root()


@pytest.mark.parametrize("size", range(9))
def test_the_roots_of_the_known_tree_are_the_known_roots(size):
    leaves = [bytes.fromhex(leaf) for leaf in KNOWN_LEAVES[:size]]
    assert root_at(size, in_memory(leaves)).hex() == grown(map(leaf_hash, leaves)).hex() == KNOWN_ROOTS[size]


def test_a_root_is_that_of_the_definition_however_it_is_come_by():
    for size in range(SIZE_MAX + 1):
        assert root_at(size, READ) == grown(HASHES[:size]) == ROOTS[size]


def test_every_inclusion_proof_of_every_tree_is_that_of_the_definition_and_is_verified():
    for size in range(1, SIZE_MAX + 1):
        for index in range(size):
            proof = inclusion_path(index, size, READ)
            assert proof == path(index, LEAVES[:size])
            assert verify_inclusion(HASHES[index], index, size, proof, ROOTS[size])


def test_every_consistency_proof_of_every_pair_of_trees_is_that_of_the_definition_and_is_verified():
    for new in range(SIZE_MAX + 1):
        for old in range(new + 1):
            proof = consistency_path(old, new, READ)
            assert proof == (subproof(old, LEAVES[:new], True) if old else [])
            assert verify_consistency(old, ROOTS[old], new, ROOTS[new], proof)


def test_an_inclusion_proof_holds_of_no_other_leaf_place_or_root():
    for size in range(1, 34):
        for index in range(size):
            proof = inclusion_path(index, size, READ)
            held = {at for at in range(-1, 36) if verify_inclusion(HASHES[index], at, size, proof, ROOTS[size])}
            assert held == {index}
            assert not any(
                verify_inclusion(HASHES[other], index, size, proof, ROOTS[size])
                for other in range(36)
                if other != index
            )
            assert not any(
                verify_inclusion(HASHES[index], index, size, proof, root) for root in ROOTS if root != ROOTS[size]
            )


def test_a_consistency_proof_holds_of_no_other_roots():
    for new in range(1, 34):
        for old in range(1, new + 1):
            proof = consistency_path(old, new, READ)
            assert not any(
                verify_consistency(old, root, new, ROOTS[new], proof) for root in ROOTS[:36] if root != ROOTS[old]
            )
            assert not any(
                verify_consistency(old, ROOTS[old], new, root, proof) for root in ROOTS[:36] if root != ROOTS[new]
            )


def mutations(proof: list[bytes]) -> list[list[bytes]]:
    """The proof with one thing wrong, in every place."""
    changed = [[*proof[:at], bytes([proof[at][0] ^ 1]) + proof[at][1:], *proof[at + 1 :]] for at in range(len(proof))]
    shorter = [[*proof[:at], *proof[at + 1 :]] for at in range(len(proof))]
    longer = [[*proof[:at], HASHES[0], *proof[at:]] for at in range(len(proof) + 1)]
    swapped = [[*proof[:at], proof[at + 1], proof[at], *proof[at + 2 :]] for at in range(len(proof) - 1)]
    cut = [[*proof[:at], proof[at][:-1], *proof[at + 1 :]] for at in range(len(proof))]
    # Bytes that move from one hash to the next are the same bytes below the hash function.
    moved = [[*proof[:at], one[:-1], one[-1:] + two, *proof[at + 2 :]] for at, (one, two) in enumerate(pairwise(proof))]
    return changed + shorter + longer + swapped + cut + moved


def test_a_proof_with_anything_wrong_is_refused():
    for size in range(1, 20):
        for index in range(size):
            for wrong in mutations(inclusion_path(index, size, READ)):
                assert not verify_inclusion(HASHES[index], index, size, wrong, ROOTS[size])
        for old in range(size + 1):
            for wrong in mutations(consistency_path(old, size, READ)):
                assert not verify_consistency(old, ROOTS[old], size, ROOTS[size], wrong)


def test_a_node_cannot_pass_for_a_leaf_of_a_smaller_tree():
    pair = node_hash(HASHES[0], HASHES[1])
    assert leaf_hash(HASHES[0] + HASHES[1]) != pair
    assert not verify_inclusion(HASHES[0][:-1], 0, 1, [], HASHES[0])


def test_only_trees_that_can_be_are_proven():
    for index, size in [(-1, 3), (3, 3), (0, 0)]:
        with pytest.raises(ValueError, match="there is no leaf"):
            inclusion_path(index, size, READ)
    for old, new in [(-1, 3), (4, 3)]:
        with pytest.raises(ValueError, match="has not grown out"):
            consistency_path(old, new, READ)
    assert nodes_of(8, 15) == [Node(2, 2), Node(1, 6), Node(0, 14)]
    assert empty_root().hex() == KNOWN_ROOTS[0]


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=80), st.data())
def test_another_implementation_has_the_same_roots_and_proofs(entries, data):
    other = InmemoryTree(algorithm="sha256")
    for entry in entries:
        other.append_entry(entry)
    size = data.draw(st.integers(1, len(entries)))
    index = data.draw(st.integers(0, size - 1))
    old = data.draw(st.integers(1, size))
    read = in_memory(entries)
    assert root_at(size, read) == other.get_root(size)
    assert inclusion_path(index, size, read) == other.prove_inclusion(index + 1, size).path[1:]
    path = consistency_path(old, size, read)
    assert verify_consistency(old, other.get_root(old), size, other.get_root(size), path)
