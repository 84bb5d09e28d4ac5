"""The handles of a run: what an application sees of it and may do to it, safe to use from any thread (SPEC H1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType

from harness.budget.usage import check_size
from harness.cancellation import Callback, CancelReason
from harness.errors import CapacityExceeded, InvalidInput
from harness.ids import boundary_id, check_code, check_name
from harness.lifecycle import Outcome, Termination
from harness.live.accounts import Accounts
from harness.live.run import LiveRun
from harness.state import OBSERVED


@dataclass(frozen=True, slots=True)
class BudgetSnapshot:
    """Usage beside its limits at one instant."""

    limits: Mapping[str, int]
    """Those that are enforced."""
    usage: Mapping[str, int]
    """With what is reserved and not settled yet."""
    usage_unknown_count: int
    observed: Mapping[str, int] = field(default_factory=dict)
    """The limits that are only observed (SPEC D13)."""
    cost_unknown_count: int = 0


class Budget:
    """The limits of a run or nested scope, and what is used of them; charged only by the harness's boundaries."""

    __slots__ = ("_accounts",)

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    def snapshot(self) -> BudgetSnapshot:
        """A consistent view: what one boundary charges is in it whole or not at all."""
        of = self._accounts.innermost()
        limits = {name: limit for name, limit in of.limits.items() if not name.startswith(OBSERVED)}
        figures = MappingProxyType(limits), MappingProxyType(of.usage), of.usage_unknown_count
        return BudgetSnapshot(*figures, MappingProxyType(of.observed), of.cost_unknown_count)


class RunCapacity:
    """The counter alone: it rejects what does not fit, and ends nothing (`Harness.reserve_bytes` does)."""

    __slots__ = ("_accounts",)

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    @property
    def used_bytes(self) -> int:
        """By the innermost nested scope here that limits bytes, else by the run."""
        return self._accounts.limiting("run_bytes").usage.get("run_bytes", 0)

    @property
    def limit_bytes(self) -> int:
        """Of the same, whether it is enforced or observed."""
        of = self._accounts.limiting("run_bytes")
        return of.limits["run_bytes"] if "run_bytes" in of.limits else of.observed["run_bytes"]

    def reserve(self, size_bytes: int, *, name: str = "capture") -> None:
        """Charge `size_bytes`, or raise `CapacityExceeded` and leave usage as it was; `RunEnded` on an ended run."""
        check_size(size_bytes)
        check_name("name", name)
        live = self._accounts.live
        with live.lock:
            self._accounts.check_open()
            excess = self._accounts.find_excess({"run_bytes": size_bytes})
            if excess is not None:
                raise CapacityExceeded(amount_bytes=size_bytes, used_bytes=excess.used, limit_bytes=excess.limit)
            boundary = boundary_id((), "capacity", name, live.ordinals.next("capacity", name), 1)
            live.record(*self._accounts.charge_bytes(size_bytes, boundary=boundary, name=name), is_awaited=False)


class Cancellation:
    """Whether and why a run was told to stop, and whom to tell."""

    __slots__ = ("_live",)

    def __init__(self, live: LiveRun) -> None:
        self._live = live

    @property
    def reason(self) -> CancelReason | None:
        """The first reason, which stays; None while nobody has signalled."""
        return self._live.cancel_reason

    @property
    def is_signalled(self) -> bool:
        return self._live.cancel_reason is not None

    def signal(self, reason: CancelReason) -> bool:
        """Tell the run to stop; False if it had already ended or been told, and then nothing has changed."""
        if not isinstance(reason, CancelReason):
            raise InvalidInput("reason", f"must be a CancelReason, not {type(reason).__name__}")
        told = self._live.lock.when_free(partial(self._live.stop, reason))
        return self._live.termination is None if told is None else told.decided

    def on_signal(self, callback: Callback) -> Callable[[], None]:
        """Call `callback` once, when the run is told to stop, or at once if it was; returns how to take it back.

        Callbacks run on the thread that signals, which may be the ledger's, and must not block. One that raises is
        logged without payloads.
        """
        if not callable(callback):
            raise InvalidInput("callback", f"must be callable, and {type(callback).__name__} is not")
        return self._live.on_signal(callback)


class Lifecycle:
    """The run's outcome as it stands."""

    __slots__ = ("_live",)

    def __init__(self, live: LiveRun) -> None:
        self._live = live

    @property
    def termination(self) -> Termination | None:
        """The decision, or None while the run is running. Provisional until the run's end is durable (SPEC D1)."""
        return self._live.termination

    @property
    def is_running(self) -> bool:
        return self._live.termination is None

    def finish(self, outcome: Outcome, reason: str) -> bool:
        """Decide the outcome; False if it was decided before, and then nothing has changed.

        `reason` is a code. At the deadline or after it there is no SUCCESS: the run ends TIMED_OUT, and this is False.
        """
        if not isinstance(outcome, Outcome):
            raise InvalidInput("outcome", f"must be an Outcome, not {type(outcome).__name__}")
        return self._live.decide(outcome, check_code("reason", reason))
