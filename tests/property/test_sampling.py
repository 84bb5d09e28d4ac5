"""A sample is the same in whatever order runs are offered, and as large as it can be."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from ledger.audit.report.sampling import Sample, rank_of


@given(
    st.lists(st.integers(0, 999), unique=True, max_size=30), st.integers(0, 8), st.text("ab", max_size=3), st.randoms()
)
def test_a_sample_is_the_runs_of_lowest_rank_whatever_the_order(numbers, size, seed, source):
    runs = [SimpleNamespace(run_id=f"run-{number}") for number in numbers]
    expected = sorted((run.run_id for run in runs), key=lambda run_id: rank_of(seed, run_id))[:size]
    source.shuffle(runs)
    sample = Sample(size, seed)
    for run in runs:
        sample.offer(run)
    assert [run.run_id for run in sample.drawn()] == expected
