"""The handles of a run: what an application sees of it and may do to it, safe to use from any thread (SPEC H1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from harness.budget import check_size, find_excess
from harness.cancellation import Callback, CancelReason
from harness.errors import CapacityExceeded, InvalidInput
from harness.events import ReservationGranted
from harness.ids import boundary_path, check_code, check_name
from harness.lifecycle import Outcome, Termination
from harness.live import LiveRun


@dataclass(frozen=True, slots=True)
class BudgetSnapshot:
    """Usage beside its limits at one instant."""

    limits: Mapping[str, int]
    usage: Mapping[str, int]
    usage_unknown_count: int


class Budget:
    """A run's limits and what it has used of them; charged only by the harness's boundaries."""

    __slots__ = ("_live",)

    def __init__(self, live: LiveRun) -> None:
        self._live = live

    def snapshot(self) -> BudgetSnapshot:
        """A consistent view: what one boundary charges is in it whole or not at all."""
        state = self._live.state
        limits, usage = MappingProxyType(state.limits), MappingProxyType(state.usage)
        return BudgetSnapshot(limits, usage, state.usage_unknown_count)


class RunCapacity:
    """The counter alone: it rejects what does not fit, and never ends the run (`Harness.reserve_bytes` does)."""

    __slots__ = ("_live",)

    def __init__(self, live: LiveRun) -> None:
        self._live = live

    @property
    def used_bytes(self) -> int:
        return self._live.state.usage.get("run_bytes", 0)

    @property
    def limit_bytes(self) -> int:
        return self._live.state.limits["run_bytes"]

    def reserve(self, size_bytes: int, *, name: str = "capture") -> None:
        """Charge `size_bytes`, or raise `CapacityExceeded` and leave usage as it was; `RunEnded` on an ended run."""
        check_size(size_bytes)
        check_name("name", name)
        live = self._live
        with live.lock:
            live.check_running()
            amounts = {"run_bytes": size_bytes}
            excess = find_excess(live.state.limits, live.state.usage, amounts)
            if excess is not None:
                raise CapacityExceeded(amount_bytes=size_bytes, used_bytes=excess.used, limit_bytes=excess.limit)
            boundary = boundary_path((), "capacity", name, live.ordinals.next("capacity", name), 1)
            granted = live.event(ReservationGranted, boundary=boundary, kind="capacity", name=name, usage=amounts)
            live.record(granted, is_awaited=False)


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
        return self._live.stop(reason).decided

    def on_signal(self, callback: Callback) -> Callable[[], None]:
        """Call `callback` once, when the run is told to stop, or at once if it was; returns how to take it back.

        Callbacks run on the thread that signals, which may be the ledger's, and must not block. One that raises is
        logged without payloads.
        """
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
