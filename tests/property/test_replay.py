"""For any legal run, the replay is the fold that the ledger keeps, in whatever order it is walked through."""

import asyncio
import itertools

from hypothesis import given
from hypothesis import strategies as st

from harness.errors import HarnessError
from ledger.audit.walking.replay import Replay
from ledger.audit.walking.standing import changes, standing
from ledger.bytes import body_of
from ledger.projections.changes import Changes
from ledger.projections.fold import project
from ledger.projections.run import RunProjection
from ledger.records import RecordedEvent
from tests.examples import examples
from tests.property.test_ledger_rebuild import ACTIONS, RandomRun


def recorded(event, seq):
    """The event as a reader gives it, as far as a replay looks."""
    fields = event.model_dump(exclude_none=True)
    of_event = (event.event_id, event.type, event.version, event.occurred_us, event.occurred_us, event.elapsed_us)
    return RecordedEvent(seq, seq, *of_event, fields, body_of(event), "", "")


def legal_run(actions):
    """The events that the fold takes of a run with those actions, and what each comes to."""
    random_run = RandomRun(0)
    run: RunProjection | None = None
    events, folded = [], []
    for submission in (random_run.run.start(), *(one for action in actions for one in random_run.submissions(*action))):
        for event in submission.events:
            try:
                run = project(run, event, Changes())
            except HarnessError:
                continue
            events.append(event)
            folded.append((run.state, run.row))
    return [recorded(event, seq) for seq, event in enumerate(events, 1)], folded


ANY_ACTIONS = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.integers(0, 11), st.none() | st.integers(0, 50)), max_size=40
)


@examples(40)
@given(ANY_ACTIONS, st.lists(st.integers(0, 10_000), max_size=12), st.integers(1, 9))
def test_the_state_at_an_event_is_the_fold_up_to_it_in_whatever_order_it_is_asked_for(actions, picks, page_events):
    events, folded = legal_run(actions)

    async def walk():
        replay = Replay.of(events, page_events)
        seqs = [pick % len(events) + 1 for pick in picks]
        asked = {seq: await replay.at(seq) for seq in seqs}
        return asked, [moment async for moment in Replay.of(events, page_events).moments()]

    asked, forward = asyncio.run(walk())
    assert [(moment.run.state, moment.run.row) for moment in forward] == folded
    assert all(forward[seq - 1] == moment for seq, moment in asked.items())


@examples(40)
@given(ANY_ACTIONS)
def test_what_an_event_changed_is_told_if_and_only_if_the_standing_differs(actions):
    events, _ = legal_run(actions)

    async def walk():
        return [moment async for moment in Replay.of(events).moments()]

    moments = asyncio.run(walk())
    for before, after in itertools.pairwise(moments):
        then, now = standing(before), standing(after)
        aside = {"seq", "elapsed_us", "left_us", "budgets", "reason", "status", "scopes", "transition_count"}
        same = all(getattr(then, name) == getattr(now, name) for name in now.__slots__ if name not in aside)
        told = changes(before, after)
        assert same or told
        assert all(change.words and change.before != change.after for change in told)
        assert not changes(after, after)
