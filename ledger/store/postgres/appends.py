"""Appends to runs, each decided on what is remembered of its run and written where the run still stands there.

What is refused, or finds its run elsewhere, is decided once more on what is stored. A statement whose answer was lost
is settled by the ids of its events, which are stored all or none (SPEC D22).
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import asyncpg

from harness.clock import WallClock
from harness.errors import HarnessError, LedgerUnavailable
from harness.events import RunStarted
from harness.journal import Recorded
from ledger.append.deciding import Draft, Setting
from ledger.append.prepared import Append
from ledger.append.remembered import Remembered
from ledger.errors import RunUnreadable
from ledger.failpoints import reached
from ledger.store.postgres import statements
from ledger.store.postgres.faults import AGAIN, FAULTS, LOST, unavailable, violated
from ledger.store.postgres.link import Link
from ledger.store.postgres.reading import Seen, Unseen
from ledger.store.postgres.writing import write, written_as

log = logging.getLogger(__name__)

T = TypeVar("T")
Job = Callable[[Draft], T]
Beside = Callable[["asyncpg.Connection[Any]"], Awaitable[None]]


class _Stale(Exception):
    """What was decided on what is only remembered counts for nothing."""


SETTLE_TIMEOUT_S = 5.0
"""How long a lost connection is followed up, and a run that others keep extending is run after."""
PAUSE_S = 0.05
MAX_SESSIONS = 10_000
"""Sessions remembered as being there."""


class _SameAgain:
    """A setting for a job that may be asked several times: the events it writes have the same ids each time."""

    def __init__(self, setting: Setting) -> None:
        self.setting = replace(setting, new_event_id=self._next)
        self._new_event_id = setting.new_event_id
        self._made: list[str] = []
        self._given = 0

    def begin(self) -> None:
        """The job is asked."""
        self._given = 0

    def _next(self) -> str:
        if self._given == len(self._made):
            self._made.append(self._new_event_id())
        self._given += 1
        return self._made[self._given - 1]


class Appends:
    """The writes of one open ledger; everything runs in one loop."""

    def __init__(self, setting: Setting, clock: WallClock, *, settle_timeout_s: float = SETTLE_TIMEOUT_S) -> None:
        self.setting = setting
        self._clock = clock
        self._settle_timeout_s = settle_timeout_s
        self._remembered = Remembered(setting.owner_id)
        self._sessions: OrderedDict[str, None] = OrderedDict()

    async def append_all(self, link: Link, run_id: str, appends: Sequence[Append]) -> list[Recorded | Exception]:
        """What became of each of the run's appends, all durable; `LedgerUnavailable` if nothing was stored."""
        begins = isinstance(appends[0].events[0].event, RunStarted)
        try:
            return await self.decide(link, partial(_attempt_all, appends), run_id, begins=begins)
        except RunUnreadable as error:
            return [error for _ in appends]
        except asyncpg.IntegrityConstraintViolationError as error:
            if len(appends) == 1:
                return [violated(error, appends[0].event_type)]
        # One of them broke a rule that the database holds: find out which, and let the others through.
        results: list[Recorded | Exception] = []
        for append in appends:
            results += await self.append_all(link, run_id, [append])
        return results

    async def decide(
        self, link: Link, job: Job[T], run_id: str | None = None, *, begins: bool = False, beside: Beside | None = None
    ) -> T:
        """What `job` returns, once all that it drafted for one stream is durable; it may be asked several times.

        It is asked first on what is remembered of `run_id`, or on its being new if it `begins`. What goes `beside` the
        draft is done in the same transaction.
        """
        until_s = asyncio.get_running_loop().time() + self._settle_timeout_s
        ids = _SameAgain(self.setting)
        seen = self._recall(run_id, begins)
        sent: list[tuple[Draft, T]] = []
        while True:
            try:
                connection = await link.connection()
                for draft, result in sent:
                    if await self._is_written(connection, draft):
                        return result
                draft, result = await self._ask(connection, job, seen, ids)
                if not draft.events:
                    return result
                sent.append((draft, result))
                if await _write(connection, draft, seen, beside):
                    self._remember(draft)
                    return result
                sent.pop()
                problem = LedgerUnavailable("others keep extending the run")
            except _Stale:
                seen = Seen(self._sessions)
                continue
            except AGAIN as error:
                sent.pop()
                problem = unavailable(error)
            except LOST as error:
                link.drop()
                problem = unavailable(error)
                await asyncio.sleep(PAUSE_S)
            except asyncpg.IntegrityConstraintViolationError:
                if seen.is_fresh:
                    raise
                sent.pop()
                seen = Seen(self._sessions)
                continue
            except FAULTS as error:
                raise unavailable(error) from error
            seen = Seen(self._sessions)
            if asyncio.get_running_loop().time() >= until_s:
                raise problem

    def _recall(self, run_id: str | None, begins: bool) -> Seen:
        """The log as far as it is remembered."""
        known = self._remembered.get(run_id) if run_id is not None else None
        if run_id is None or (known is None and not begins):
            return Seen(self._sessions)
        return Seen(self._sessions, {run_id: known.head if known is not None else None})

    async def _ask(
        self, connection: asyncpg.Connection[Any], job: Job[T], seen: Seen, ids: _SameAgain
    ) -> tuple[Draft, T]:
        """A draft and what the job says of it. What is refused on what is only remembered is asked once more."""
        while True:
            ids.begin()
            draft = Draft(seen, ids.setting, self._now_us())
            try:
                result = job(draft)
            except Unseen as unseen:
                await self._fetch(connection, unseen, seen)
                continue
            except Exception as error:
                if not seen.is_fresh:
                    raise _Stale from error
                raise
            is_refused = isinstance(result, list) and any(isinstance(one, Exception) for one in result)
            if not seen.is_fresh and (is_refused or not draft.events):
                raise _Stale
            return draft, result

    async def _fetch(self, connection: asyncpg.Connection[Any], unseen: Unseen, seen: Seen) -> None:
        known = self._remembered.get(unseen.run_id) if unseen.run_id is not None else None
        await seen.fetch(connection, unseen, known.head if known is not None else None)
        if unseen.run_id is not None:
            head = seen.heads[unseen.run_id]
            if head is not None:
                self._remembered.put(unseen.run_id, head, 0)

    async def _is_written(self, connection: asyncpg.Connection[Any], draft: Draft) -> bool:
        """Whether this very draft is there, of which that was not answered; all of it is, or nothing."""
        stream_id, links = written_as(draft)
        rows = await connection.fetch(statements.FIND_EVENTS, stream_id, list(links))
        return {row["event_id"]: row["link"] for row in rows} == links

    def _remember(self, draft: Draft) -> None:
        for run_id, head in draft.runs.items():
            self._remembered.put(run_id, head, 0)
        for session_id in draft.sessions:
            self._sessions[session_id] = None
            if len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)

    def _now_us(self) -> int:
        now_us = self._clock.now_us()
        if now_us < 0:
            raise LedgerUnavailable("the clock shows a time before 1970")
        return now_us


def _attempt_all(appends: Sequence[Append], draft: Draft) -> list[Recorded | Exception]:
    return [_attempt(draft, append) for append in appends]


def _attempt(draft: Draft, append: Append) -> Recorded | Exception:
    """The append taken into the draft, or why it is refused; a fault in folding one fails none of the others."""
    try:
        return draft.append(append)
    except Unseen:
        raise
    except HarnessError as error:
        return error
    except Exception as error:
        log.exception("run %s: an append could not be folded", append.run_id)
        return error


async def _write(connection: asyncpg.Connection[Any], draft: Draft, seen: Seen, beside: Beside | None) -> bool:
    reached("before statement")
    if beside is None:
        is_written = await write(connection, draft, seen)
    else:
        async with connection.transaction():
            is_written = await write(connection, draft, seen)
            if is_written:
                await beside(connection)
    reached("after statement")
    return is_written
