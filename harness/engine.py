"""What one harness brings to every run: clocks, ids, the journal, threads, and its policies."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.budget.limits import ScopeLimits
from harness.budget.prices import PriceTable
from harness.clock import MonotonicClock, SystemMonotonicClock, SystemWallClock, WallClock
from harness.concurrency.threads import ToolThreads
from harness.concurrency.waiting import result_of
from harness.content import CapturePolicy, Content
from harness.deadline import check_timeout
from harness.errors import InvalidInput
from harness.events import build_models
from harness.hooks.calling import check_hooks
from harness.hooks.observers import Observer
from harness.hooks.policies import Decision, Policy
from harness.ids import IdSource, RandomIds
from harness.journal import Journal, Permit
from harness.retry import Classifier

MIN_PERMIT_TIMEOUT_S = 0.001
"""At the deadline a permit is still asked for, since a refusal is recorded too."""
PORTS = {
    "journal": (("request_permit", "submit", "watch"), "a Journal (MemoryJournal(), ledger.journal)"),
    "monotonic_clock": (("now_ns",), "a MonotonicClock (SystemMonotonicClock(), ManualClock())"),
    "wall_clock": (("now_us",), "a WallClock (SystemWallClock(), ManualClock())"),
    "ids": (("run_id", "writer_id", "salt", "fraction"), "an IdSource (RandomIds())"),
}
"""What an application may bring of its own, what each must have, and examples."""


class Script(Protocol):
    """What stands in for the world where a recorded run is executed again (`harness.replay`)."""

    async def turn(self, boundary: str, given: Mapping[str, Content]) -> None:
        """Wait until it is this boundary's turn to ask to be let through; `given` is what its attempts are given."""

    def verdicts(self, boundary: str) -> Sequence[tuple[str, Decision]]:
        """What each policy decided there, under its name."""

    def attempt(self, *of: Any) -> Any:
        """An `Attempt` that calls no operation; `of` is what that takes."""


@dataclass(frozen=True, slots=True)
class Engine:
    """Everything that the runs of one harness share; none of it belongs to a run."""

    journal: Journal
    monotonic_clock: MonotonicClock = field(default_factory=SystemMonotonicClock)
    wall_clock: WallClock = field(default_factory=SystemWallClock)
    ids: IdSource = field(default_factory=RandomIds)
    capture: CapturePolicy = field(default_factory=CapturePolicy)
    classifiers: tuple[Classifier, ...] = ()
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    close_timeout_s: float = 10.0
    """How long the end of a run may take to become durable."""
    drain_timeout_s: float = 5.0
    """How long asynchronous operations in flight may take to stop once their run has ended (SPEC D4)."""
    permit_timeout_s: float = 10.0
    """How long a boundary waits for room in the journal's queue."""
    prices: PriceTable | None = None
    """By which cost is reckoned; None does not reckon it."""
    threads: ToolThreads = field(default_factory=ToolThreads)
    observers: tuple[Observer, ...] = ()
    """Told what happened, once it is on record."""
    policies: tuple[Policy, ...] = ()
    """Asked before each tool call; all must allow it."""
    hook_timeout_s: float = 5.0
    """How long one observer or policy may take."""
    script: Script | None = None
    """Takes the place of operations and policies; None where a run is not executed again."""

    def __post_init__(self) -> None:
        for name, (methods, examples) in PORTS.items():
            port = getattr(self, name)
            if not all(callable(getattr(port, method, None)) for method in methods):
                raise InvalidInput(name, f"must be {examples}, not {type(port).__name__}")
        for name in ("close_timeout_s", "drain_timeout_s", "permit_timeout_s", "hook_timeout_s"):
            check_timeout(name, getattr(self, name))
        for name in ("observers", "policies", "classifiers"):
            object.__setattr__(self, name, check_hooks(name, getattr(self, name)))
        if not isinstance(self.prices, PriceTable | None):
            raise InvalidInput("prices", f"must be a PriceTable, not {type(self.prices).__name__}")
        if not isinstance(self.capture, CapturePolicy):
            raise InvalidInput("capture", f"must be a CapturePolicy, not {type(self.capture).__name__}")
        build_models()

    def check_priced(self, limits: ScopeLimits) -> None:
        """Refuse a limit on cost where nothing tells what anything costs."""
        if limits.cost_micros is not None and self.prices is None:
            raise InvalidInput("limits.cost_micros", "needs prices: Harness(journal, prices=PriceTable(...))")

    async def permit(self, remaining_s: float) -> Permit:
        """Room for one boundary; `LedgerUnavailable` if there is none in time."""
        requested = self.journal.request_permit(min(self.permit_timeout_s, max(remaining_s, MIN_PERMIT_TIMEOUT_S)))
        try:
            return await result_of(requested)
        except BaseException:
            requested.add_done_callback(_give_back)
            raise


def _give_back(granted: Future[Permit]) -> None:
    """Release a permit that nobody waits for any more."""
    if not granted.cancelled() and granted.exception() is None:
        granted.result().release()
