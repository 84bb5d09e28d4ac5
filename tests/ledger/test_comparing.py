"""What a rebuild looks at together is short and without a gap, since it is read from the first to the last."""

from hypothesis import given
from hypothesis import strategies as st

from ledger.store.comparing import GROUP_EVENTS, Stream, groups_of


@given(st.lists(st.integers(1, GROUP_EVENTS * 2) | st.integers(1, 9), max_size=40))
def test_each_group_is_short_and_between_its_ends_nothing_is_left_out(lengths):
    streams = [Stream(f"r:{number:03}", f"{number:03}", length) for number, length in enumerate(lengths)]
    groups = list(groups_of(streams))
    assert [stream for group in groups for stream in group] == [
        stream for stream in streams if stream.head_seq <= GROUP_EVENTS
    ]
    for group in groups:
        assert sum(stream.head_seq for stream in group) <= GROUP_EVENTS
        first = streams.index(group[0])
        assert list(group) == streams[first : first + len(group)]
