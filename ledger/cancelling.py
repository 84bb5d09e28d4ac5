"""Asking that a run be cancelled, from wherever the ledger can be opened (SPEC E7, D3)."""

from __future__ import annotations

from harness.errors import AlreadyTerminated, InvalidInput
from harness.events import REQUESTABLE, CancellationRequested
from harness.ids import check_name
from harness.state import RUNNING
from ledger.annotations import append_to, event_of, head_of
from ledger.append.deciding import Draft


class CancelRequest:
    """A request that may be recorded."""

    def __init__(self, reason: str, actor: str | None) -> None:
        if reason not in REQUESTABLE:
            raise InvalidInput("reason", f"must be one of {', '.join(sorted(REQUESTABLE))}, not {reason!r}")
        self._reason = reason
        self._actor = None if actor is None else check_name("actor", actor)

    def record(self, draft: Draft, session_id: str, run_id: str, now_us: int) -> bool:
        """Append it, unless one is there; `AlreadyTerminated` if the run has ended, `RunNotFound` if there is none."""
        head = head_of(draft, session_id, run_id)
        state = head.projection.state
        if state.outcome != RUNNING:
            raise AlreadyTerminated(run_id, outcome=state.outcome, reason=state.reason or state.outcome)
        if state.cancel_requested is not None:
            return False
        asked = event_of(CancellationRequested, draft, head, now_us, reason=self._reason, actor=self._actor)
        append_to(draft, head, (asked,))
        return True
