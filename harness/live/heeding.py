"""A run heeds what others ask of it through the journal: that it be cancelled (SPEC E7, D3)."""

from __future__ import annotations

import weakref
from collections.abc import Callable

from harness.cancellation import CancelReason
from harness.events import REQUESTABLE
from harness.journal import Journal
from harness.live.run import LiveRun


def heed_requests(journal: Journal, live: LiveRun) -> Callable[[], None]:
    """Stop the run as soon as anybody has asked for it, until what is returned is called."""
    # The journal must not keep a run alive whose block nobody can leave any more.
    followed = weakref.ref(live)

    def stop(reason: str) -> None:
        run = followed()
        if run is not None:
            run.stop(CancelReason(reason) if reason in REQUESTABLE else CancelReason.USER_REQUESTED)

    return journal.watch(live.run_id, stop)
