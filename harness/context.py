"""The record that is passed explicitly to every boundary of a run (SPEC H1)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from harness.deadline import Deadline
from harness.errors import InvalidInput
from harness.handles import Budget, Cancellation, Lifecycle, RunCapacity
from harness.ids import boundary_id, check_name
from harness.live.accounts import Accounts
from harness.live.ordinals import Ordinals
from harness.live.run import LiveRun
from harness.live.sent import SentRequests
from harness.retry import RetryPolicies

ENCLOSING_KINDS = ("model", "tool", "guard", "scope", "batch")
"""The kinds of boundaries inside which others lie."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """One run. The record never changes; its handles are thread-safe and shared by every copy of it."""

    session_id: str
    run_id: str
    deadline: Deadline = field(repr=False)
    cancellation: Cancellation = field(repr=False)
    budget: Budget = field(repr=False)
    capacity: RunCapacity = field(repr=False)
    retry_policies: RetryPolicies = field(repr=False)
    lifecycle: Lifecycle = field(repr=False)
    live: LiveRun = field(repr=False)
    """What the handles share; for the harness, not for applications."""
    accounts: Accounts = field(repr=False)
    """What its boundaries are charged to; for the harness."""
    path: tuple[str, ...] = ()
    """Where in the run this copy stands; the first part of every boundary's identity (SPEC D7)."""
    ordinals: Ordinals = field(default_factory=Ordinals, repr=False)
    """Those of the boundaries at this path; for the harness."""
    attempt_id: str | None = None
    """The attempt inside which this copy was handed out."""
    sent: SentRequests | None = field(default=None, repr=False)
    """The requests that this attempt was seen to send; for the adapters."""

    def branch(self, key: str) -> RunContext:
        """The same run on a path of its own; concurrent work needs one each, or order would decide identity."""
        path = (*self.path, check_name("key", key))
        if _is_attempt(path[-4:]):
            raise InvalidInput(
                "key", f"makes the path {'/'.join(path)}, which is that of an attempt, nested scope or batch"
            )
        with self.live.lock:
            return replace(self, path=path, ordinals=self.ordinals.branch(key))

    def inside(
        self, segments: tuple[str, str, str, str], attempt_id: str, sent: SentRequests | None = None
    ) -> RunContext:
        """The same run as an operation sees it: on the path of its attempt."""
        # Every attempt makes one, and `replace` takes three times as long.
        return RunContext(
            self.session_id,
            self.run_id,
            self.deadline,
            self.cancellation,
            self.budget,
            self.capacity,
            self.retry_policies,
            self.lifecycle,
            self.live,
            self.accounts,
            path=(*self.path, *segments),
            ordinals=Ordinals(),
            attempt_id=attempt_id,
            sent=sent,
        )

    def next_ordinal(self, kind: str, name: str) -> int:
        """The ordinal of the next boundary of this kind and name at this path (SPEC D7)."""
        with self.live.lock:
            return self.ordinals.next(kind, name)

    def boundary(self, kind: str, name: str) -> str:
        """Identity of the next boundary here that has one attempt only."""
        return boundary_id(self.path, kind, name, self.next_ordinal(kind, name), 1)


def check_run(run: object) -> RunContext:
    """`run` if it is one, else `InvalidInput`."""
    if not isinstance(run, RunContext):
        raise InvalidInput("run", f"must be a RunContext, not {type(run).__name__}")
    return run


def _is_attempt(segments: tuple[str, ...]) -> bool:
    """Whether a path that ends so is that of an attempt, nested scope or batch: kind, name, ordinal, attempt."""
    return len(segments) == 4 and segments[0] in ENCLOSING_KINDS and segments[2].isdigit() and segments[3].isdigit()


Run = RunContext
"""What users call a `RunContext`."""
