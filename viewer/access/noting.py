"""What of a request is put on record: each run and session that it will show, and why nothing is shown of others.

What is not there is nothing that somebody saw, else whoever makes up ids fills the ledger. It is a refusal, of which
there is a bound; and it is hidden, so that nobody sees without a record what comes to be there just then.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Protocol

from starlette.types import Scope

from harness.clock import MonotonicClock
from ledger.errors import RunNotFound, SessionNotFound
from viewer.access.principal import ANYBODY, Principal
from viewer.access.records import Access, AccessRecords, Recorder
from viewer.access.rule import Rule
from viewer.access.sessions import Sessions, safe_id

FOREIGN_SESSION: Final = "FOREIGN_SESSION"
NOT_FOUND: Final = "NOT_FOUND"
"""Why somebody sees nothing, beside the codes of `AccessRefused`."""


class Runs(Protocol):
    """The part of `ledger.LedgerReader` that says what there is."""

    async def session(self, session_id: str) -> object:
        """The session; `SessionNotFound`."""

    async def status(self, session_id: str, run_id: str) -> str:
        """How a run of that session stands; `RunNotFound`."""


class Noting:
    """Puts on record what requests are about."""

    def __init__(self, recorder: Recorder, runs: Runs | None, sessions: Sessions, clock: MonotonicClock) -> None:
        """Without `runs`, whatever somebody names counts as looked at."""
        self._records = AccessRecords(recorder, clock)
        self._runs = runs
        self._sessions = sessions

    async def subjects(self, scope: Scope, rule: Rule, principal: Principal) -> set[str]:
        """Record each that will be shown, of those that are his to see; gives back the sessions to be hidden."""
        hidden: set[str] = set()
        for session_id, run_id in self._sessions.subjects(scope, rule.about):
            if session_id is not None and not principal.sees(session_id):
                continue
            seen = replace(_access(rule, principal), of_session_id=safe_id(session_id), of_run_id=safe_id(run_id))
            if session_id is None or rule.may_make or self._records.is_recent(seen) or await self._is_there(seen):
                await self._records.note(seen)
            elif rule.lists_sessions:
                # It is empty, of whatever made-up session.
                await self._records.note(replace(seen, of_session_id=None, of_run_id=None))
            else:
                await self.refusal(rule, principal, NOT_FOUND, session_id)
                hidden.add(session_id)
        return hidden

    async def refusal(
        self, rule: Rule, principal: Principal | None, reason: str, session_id: str | None = None
    ) -> None:
        """Record that somebody was refused."""
        refused = replace(_access(rule, principal or ANYBODY), reason=reason)
        await self._records.note_refusal(refused, safe_id(session_id))

    async def _is_there(self, seen: Access) -> bool:
        """Whether the ledger has the run or the session; ids that can be none are for the endpoint to refuse."""
        if self._runs is None or seen.of_session_id is None:
            return True
        try:
            if seen.of_run_id is None:
                await self._runs.session(seen.of_session_id)
            else:
                await self._runs.status(seen.of_session_id, seen.of_run_id)
        except (RunNotFound, SessionNotFound):
            return False
        return True


def _access(rule: Rule, principal: Principal) -> Access:
    return Access(rule.action, token_id=principal.token_id, actor=principal.owner)
