"""The runs of this process that wait to hear whether anybody has asked that they be cancelled (SPEC E7)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

log = logging.getLogger(__name__)

OnRequest = Callable[[str], object]

POLL_S = 0.25
"""How often it is looked for requests, while any run is watched."""


class Requests:
    """Who watches which run. Any thread may call; an engine looks for requests, and tells."""

    def __init__(self) -> None:
        # Re-entrant, as a collection may come while a thread has it, and end a run that is watched.
        self.changed = threading.Condition()
        self._watches: dict[str, dict[object, OnRequest]] = {}
        self._has_new = False

    def watch(self, run_id: str, on_request: OnRequest) -> Callable[[], None]:
        """As `harness.journal.Journal.watch`."""
        key = object()
        with self.changed:
            self._watches.setdefault(run_id, {})[key] = on_request
            self._has_new = True
            self.begin()

        def end() -> None:
            with self.changed:
                watches = self._watches.get(run_id, {})
                watches.pop(key, None)
                if not watches:
                    self._watches.pop(run_id, None)

        return end

    def begin(self) -> None:
        """A run is watched from now on; called with `changed` held."""

    def watched(self) -> tuple[list[str], bool]:
        """The runs, and whether one of them has come since the last call; call with `changed` held."""
        has_new, self._has_new = self._has_new, False
        return list(self._watches), has_new

    def tell(self, requests: Iterable[tuple[str, str]]) -> None:
        """Pass on what was asked of which run; each watch hears once."""
        for run_id, reason in requests:
            with self.changed:
                told = self._watches.pop(run_id, {})
            for on_request in told.values():
                try:
                    on_request(reason)
                except Exception:
                    log.exception("run %s: what waited for a request raised", run_id)
