"""Bytes of captured content that a run may hold (SPEC H9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.budget import find_excess
from harness.errors import CapacityExceeded, InvalidInput
from harness.events import ReservationGranted
from harness.ids import boundary_path, check_name

if TYPE_CHECKING:
    from harness.live import LiveRun


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


def check_size(size_bytes: object) -> None:
    """Refuse anything but a positive whole number of bytes."""
    if isinstance(size_bytes, bool) or not isinstance(size_bytes, int) or size_bytes < 1:
        raise InvalidInput("size_bytes", f"must be a whole number of bytes from 1, not {size_bytes!r}")
