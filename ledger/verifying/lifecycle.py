"""Each event can come where it is, by the rules that the writer decides with (SPEC E6, H4).

What a run's events add up to is folded on the way. A reservation that was granted must have fitted into every limit
that is enforced: the run's, and those of the scopes around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import cast

from harness import events as e
from harness.budget.usage import Account, find_excess
from harness.errors import IllegalEvent
from harness.state import NOTHING, RUNNING, RunState
from ledger.append.deciding import StreamRow
from ledger.projections.changes import Changes
from ledger.projections.fold import advance_run, project_all
from ledger.projections.rows import SessionShare
from ledger.projections.run import RunProjection
from ledger.verifying.findings import Finding, Problem
from ledger.verifying.saying import Said, Unknown
from ledger.words.text import first_line

TOKENS = ("input_tokens", "output_tokens")
SENSELESS = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, AssertionError)
"""What comes of an event that says what none can say."""


class Lifecycle:
    """What the events of a stream add up to. After the first that cannot be there nothing more is said."""

    def __init__(self, stream: StreamRow) -> None:
        self._stream = stream
        self._seq = 0
        self.finding: Finding | None = None
        self.run: RunProjection | None = None
        """Of a run's stream."""
        self.shares: list[SessionShare] = []
        """Of a session's stream: what its own events add to its row."""
        self.unknown_count = 0
        """Events of types and versions that this program does not know, and which it passes over."""

    def add_page(self, events: Sequence[Said]) -> Changes:
        """The next events; the rows that they change."""
        changes = Changes()
        if self.finding is not None:
            return changes
        try:
            if self._stream.run_id is not None:
                self._advance(self._known(events), changes)
            else:
                self.shares += [_share_of(event) for event in self._known(events) if event.type == "session.opened"]
        except IllegalEvent as error:
            self._found("event_out_of_place", str(error))
        except SENSELESS as error:
            self._found("event_unreadable", first_line(error))
        return changes

    def owner_finding(self) -> Finding | None:
        """What is wrong with the owner, no event following: a run that goes on has one, and nothing else has."""
        if self.finding is not None or self.unknown_count:
            return None
        stream = self._stream
        is_open = self.run is not None and self.run.state.outcome == RUNNING
        if is_open and stream.owner_id is None:
            return Finding("owner_differs", "the run has no end, and nobody owns it", stream.stream_id)
        if not is_open and stream.owner_id is not None:
            return Finding("owner_differs", "it is said to have an owner, and does not go on", stream.stream_id)
        if (stream.owner_epoch < 1) is (stream.run_id is not None):
            return Finding("owner_differs", f"{stream.owner_epoch} owners are counted", stream.stream_id)
        return None

    def shares_with(self, runs: tuple[int | None, int | None, int]) -> list[SessionShare]:
        """What a session's row adds up to, with what its runs add: from when, until when, and how many answers."""
        session_id, (created_us, active_us, pairs) = self._stream.session_id, runs
        if session_id is None or created_us is None or active_us is None:
            return self.shares
        return [*self.shares, SessionShare(session_id, created_us, active_us, pairs)]

    def _known(self, events: Sequence[Said]) -> Iterator[e.Event]:
        for event in events:
            self._seq += 1
            if isinstance(event, Unknown):
                self.unknown_count += 1
            else:
                yield event

    def _advance(self, events: Iterator[e.Event], changes: Changes) -> None:
        if self.run is None:
            self.run = project_all(None, islice(events, 1), changes)
        run = self.run
        if run is None:
            return
        for event in events:
            self._check_figures(run.state, event)
            advance_run(run, event, changes)
        changes.runs[run.state.run_id] = run

    def _check_figures(self, state: RunState, event: e.Event) -> None:
        if event.type == "reservation.granted":
            self._check_granted(state, cast(e.ReservationGranted, event))
        elif event.type == "usage.settled":
            self._check_settled(cast(e.UsageSettled, event).usage or NOTHING)

    def _check_granted(self, state: RunState, event: e.ReservationGranted) -> None:
        accounts: list[Account] = [state]
        scope = state.scopes.get(event.scope_id) if event.scope_id is not None else None
        if scope is not None:
            accounts += [state.scopes[key] for key in scope.scope_ids if key in state.scopes]
        for account in accounts:
            excess = find_excess(account, event.usage)
            if excess is not None:
                detail = (
                    f"{excess.amount} of {excess.resource} were granted where {excess.used} of {excess.limit} were used"
                )
                self._found("budget_exceeded", detail)

    def _check_settled(self, usage: Mapping[str, int]) -> None:
        known = sum(usage.get(name, 0) for name in TOKENS)
        if usage.get("total_tokens", known) != known:
            self._found("usage_differs", f"{usage['total_tokens']} tokens were settled, and their parts are {known}")

    def _found(self, problem: Problem, detail: str) -> None:
        if self.finding is None:
            self.finding = Finding(problem, detail, self._stream.stream_id, self._seq)


def _share_of(event: e.Event) -> SessionShare:
    opened = cast(e.SessionOpened, event)
    return SessionShare(opened.session_id, opened.occurred_us, opened.occurred_us, 0, opened.ttl_us)
