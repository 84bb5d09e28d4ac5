"""The outbound port: where a harness sends events, and what it may rely on.

A journal accepts submissions without ever blocking (`submit`), in the order in which one run submits them, and says
through a future when they are durable. Room is taken beforehand with a permit, which may have to be waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple, Protocol

from harness.content import SealedContent
from harness.events import Event


class Submission(NamedTuple):
    """What belongs to one boundary: stored all or none, in this order (SPEC D22)."""

    session_id: str
    run_id: str
    events: tuple[Event, ...]
    contents: tuple[SealedContent, ...] = ()
    resumes: bool = False
    """True for the first submission after a failed one; without it a run that lost a submission is refused."""
    is_awaited: bool = True
    """False where no work waits for it: a journal may hold it back for a moment, to write it with what comes next."""


class Recorded(NamedTuple):
    """Where a submission's events are in their stream."""

    first_seq: int
    last_seq: int
    head_link: bytes
    """32 bytes: the link of the last event, which commits to everything before it in the run."""
    erasure_count: int = 0
    """How often content of the run was erased so far; once that grows, what was sealed before may be gone."""


class Permit(Protocol):
    """Room in the queue for one start, until that is durable; ends and terminations need none."""

    def release(self) -> None:
        """Give the room back; once is enough, more does no harm."""


class Journal(Protocol):
    """An append-only, durable log as a harness sees it. Every method may be called from any thread."""

    def request_permit(self, timeout_s: float) -> Future[Permit]:
        """Room in the queue; fails with `LedgerUnavailable` if there is none within `timeout_s`."""

    def submit(self, submission: Submission) -> Future[Recorded]:
        """Append; never blocks. The future completes once the events are durable.

        `ValueError` at once for an event that cannot be written (nothing is stored). The future fails with
        `LedgerUnavailable` if nothing of the submission was stored (then all later submissions of that run fail too,
        until one `resumes`), `AlreadyTerminated` if the run has ended, `IllegalEvent` if the events cannot follow
        those in the stream. Callbacks of one run's futures come in the order of its submissions.
        """

    def watch(self, run_id: str, on_request: Callable[[str], object]) -> Callable[[], None]:
        """Call `on_request` with the reason, once, as soon as anybody has asked that the run be cancelled (SPEC E7).

        Also if that was before, and within a second wherever it was asked. It is called on a thread of the journal's,
        or of who asks, and must not block. What is returned ends the watch.
        """
