"""A journal, a clock and a harness for each test."""

import threading
from collections.abc import Iterator

import pytest

from harness import Harness, ManualClock
from tests.harness.fakes import HandJournal, harness_over


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def journal() -> HandJournal:
    return HandJournal()


@pytest.fixture
def harness(journal: HandJournal, clock: ManualClock) -> Harness:
    return harness_over(journal, clock)


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(journal: HandJournal) -> Iterator[None]:
    """No test leaves a permit taken or a thread running."""
    yield
    for thread in threading.enumerate():
        if thread.name == "harness-tool":
            thread.join(timeout=10)
    assert [thread.name for thread in threading.enumerate() if thread.name == "harness-tool"] == []
    assert journal.permits_open == 0
