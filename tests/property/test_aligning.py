"""What is laid side by side is in common, in order, complete, and as much as there is."""

import random

from hypothesis import given
from hypothesis import strategies as st

from ledger.audit.comparing.aligning import align
from tests.examples import examples

SEQUENCES = st.lists(st.sampled_from("abc"), max_size=25)


def longest(a, b):
    """The length of a longest common subsequence, by the table that everybody knows."""
    row = [0] * (len(b) + 1)
    for left in a:
        diagonal = 0
        for at, right in enumerate(b, 1):
            diagonal, row[at] = row[at], diagonal + 1 if left == right else max(row[at], row[at - 1])
    return row[-1]


def common(pairs):
    return [pair for pair in pairs if None not in pair]


def check(a, b, alignment):
    assert [left for left, _ in alignment.pairs if left is not None] == list(range(len(a)))
    assert [right for _, right in alignment.pairs if right is not None] == list(range(len(b)))
    assert all(a[left] == b[right] for left, right in common(alignment.pairs))


@examples(150)
@given(SEQUENCES, SEQUENCES)
def test_an_alignment_is_complete_and_has_the_most_in_common(a, b):
    alignment = align(a, b)
    check(a, b, alignment)
    assert alignment.is_longest
    assert len(common(alignment.pairs)) == longest(a, b)


@examples(150)
@given(SEQUENCES, SEQUENCES, st.integers(1, 6))
def test_beyond_its_bound_an_alignment_is_still_complete_and_says_that_more_may_be_in_common(a, b, differences_max):
    alignment = align(a, b, differences_max)
    check(a, b, alignment)
    if alignment.is_longest:
        assert len(common(alignment.pairs)) == longest(a, b)
    else:
        assert len(a) + len(b) - 2 * longest(a, b) > differences_max


def test_what_difflib_leaves_out_is_found():
    a, b = list("xxaaabyyyy"), list("aaabzzxxyy")
    assert len(common(align(a, b).pairs)) == longest(a, b)


def test_long_sequences_with_few_differences_are_aligned_exactly():
    source = random.Random(7)
    a = [source.choice("abcdefgh") for _ in range(20_000)]
    b = [value for value in a if source.random() > 0.002]
    b[5_000:5_000] = "zzzz"
    alignment = align(a, b)
    check(a, b, alignment)
    assert alignment.is_longest
    assert len(common(alignment.pairs)) == len(b) - 4
