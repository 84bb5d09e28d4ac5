"""A journal in memory keeps the contract of every journal (SPEC E5, E6)."""

from typing import Any

import pytest

from harness import AlreadyTerminated, IllegalEvent, LedgerUnavailable, MemoryJournal
from harness import events as e
from harness.content import TEXT, Content, Sealer
from harness.journal import Submission
from tests.harness.fakes import LOST, CountingIds, types


def event(model: type[e.RunEvent], number: int, **fields: Any) -> e.RunEvent:
    envelope: dict[str, Any] = {
        "event_id": f"w1:{number}",
        "stream_id": "r:r",
        "session_id": "s",
        "run_id": "r",
        "occurred_us": number,
        "elapsed_us": number,
    }
    return model(**envelope, **fields)


BEGAN = event(e.RunStarted, 1, limits={"model_calls": 1, "run_bytes": 10}, timeout_us=1)
ENTERED = event(e.GraphTransitioned, 2, boundary="transition/a/1/1", to_node="a", cause="NEXT")
ENDED = event(e.RunTerminated, 3, boundary="termination/run/1/1", outcome="SUCCESS", reason="COMPLETED")
PRAISED = event(e.FeedbackRecorded, 4, useful=True)


def submit(journal: MemoryJournal, *events: e.RunEvent, **options: Any) -> Any:
    return journal.submit(Submission("s", "r", events, **options)).result(timeout=0)


def test_events_are_numbered_from_one_without_a_gap():  # E5
    journal = MemoryJournal()
    first, second = submit(journal, BEGAN, ENTERED), submit(journal, ENDED)
    assert (first.first_seq, first.last_seq, second.first_seq, second.last_seq) == (1, 2, 3, 3)
    assert len(first.head_link) == len(second.head_link) == 32


def test_a_submission_is_stored_whole_or_not_at_all():  # D22
    journal = MemoryJournal()
    submit(journal, BEGAN)
    with pytest.raises(IllegalEvent):
        submit(journal, ENTERED, BEGAN)
    assert types(journal.events("r")) == ["run.started"]


def test_a_run_begins_once_and_first():  # E6
    journal = MemoryJournal()
    with pytest.raises(IllegalEvent, match=r"a run begins with run\.started"):
        submit(journal, ENTERED)
    submit(journal, BEGAN)
    with pytest.raises(IllegalEvent, match=r"run\.started"):
        submit(journal, BEGAN)


def test_an_ended_run_takes_annotations_only():  # E6
    journal = MemoryJournal()
    submit(journal, BEGAN, ENDED)
    for more in (ENTERED, ENDED, BEGAN):
        with pytest.raises(AlreadyTerminated) as ended:
            submit(journal, more)
        assert (ended.value.outcome, ended.value.reason) == ("SUCCESS", "COMPLETED")
    submit(journal, PRAISED)
    assert types(journal.events("r")) == ["run.started", "run.terminated", "feedback.recorded"]


def test_after_a_loss_a_run_is_refused_until_it_resumes():  # D12
    journal = MemoryJournal()
    submit(journal, BEGAN)
    journal.fail_with = LOST
    with pytest.raises(LedgerUnavailable):
        submit(journal, ENTERED)
    journal.fail_with = None
    with pytest.raises(LedgerUnavailable, match="earlier submission"):
        submit(journal, ENTERED)
    submit(journal, ENTERED, resumes=True)
    submit(journal, ENDED)
    assert journal.state("r").outcome == "SUCCESS"


def test_contents_are_kept_by_their_digest():  # E10
    journal = MemoryJournal()
    sealed, _ = Sealer(CountingIds().salt).seal(Content(b"x", TEXT), keep=True)
    submit(journal, BEGAN, contents=(sealed,))
    assert journal.contents == {sealed.digest: sealed}


def test_an_unknown_run_has_no_events_and_no_state():
    journal = MemoryJournal()
    assert journal.events("nobody") == []
    with pytest.raises(KeyError):
        journal.state("nobody")
