"""Which runs an open ledger remembers: those that its own owner has open, however many, and a few others.

Of each it is the run's row, what is open or unsettled, and at most 200 transitions; not what has ended. A run that its
harness could not end stays until the ledger is closed.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from ledger.append.deciding import RunHead

MAX_RUNS = 256
"""Runs remembered beside those that this ledger's own owner has open: ended ones, and those of other owners."""


class Known(NamedTuple):
    """A head, and the version of the log as of which it is right."""

    head: RunHead
    version: int


class Remembered:
    """Heads by run, the least recently used of others' runs forgotten first."""

    def __init__(self, owner_id: str) -> None:
        self._owner_id = owner_id
        self._own: dict[str, Known] = {}
        self._others: OrderedDict[str, Known] = OrderedDict()

    @property
    def counts(self) -> tuple[int, int]:
        """How many runs of this owner are remembered, and how many others."""
        return len(self._own), len(self._others)

    def is_own(self, run_id: str) -> bool:
        """Whether the run is remembered as this owner's."""
        return run_id in self._own

    def get(self, run_id: str) -> Known | None:
        return self._own.get(run_id) or self._others.get(run_id)

    def put(self, run_id: str, head: RunHead, version: int) -> None:
        if head.owner_id == self._owner_id:
            self._others.pop(run_id, None)
            self._own[run_id] = Known(head, version)
            return
        self._own.pop(run_id, None)
        self._others[run_id] = Known(head, version)
        self._others.move_to_end(run_id)
        if len(self._others) > MAX_RUNS:
            self._others.popitem(last=False)

    def forget(self) -> None:
        """Remember nothing any more."""
        self._own.clear()
        self._others.clear()
