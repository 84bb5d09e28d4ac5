"""Erasing content: bytes and salts go, events and proofs stay (SPEC E10, D19).

An erasure is decided once, in the ledger's own stream; then it takes content run by run, in small transactions, each
of which says so in its run; then the store is cleaned of what the tables no longer hold. Every step can be repeated,
so whatever is left of it when a process dies is done later, by whoever finishes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from harness import events as e
from harness.errors import LedgerUnavailable
from harness.events.base import MAX_SAFE_INTEGER
from harness.ids import run_stream
from ledger.erasing.tally import Tally
from ledger.errors import AppendConflict
from ledger.failpoints import reached

log = logging.getLogger(__name__)

RUNS_AT_ONCE = 50
"""Runs, and"""
CONTENTS_AT_ONCE = 500
"""contents in one transaction, so that nobody waits long."""
BYTES_AT_ONCE = 32 * 1024 * 1024
"""So many bytes end a transaction: what is overwritten goes through the log."""
POLL_S = 0.05
DECISIONS_TRIED_MAX = 100
"""How often a decision is tried anew because something else about the ledger was recorded just before it."""


@dataclass(frozen=True, slots=True)
class ErasureLimits:
    """How far an erasure goes to be rid of what the tables no longer hold."""

    clean_timeout_s: float = 10.0
    """How long it waits for readers that keep what was erased in the log."""
    rewrite_bytes_max: int = 64 * 1024 * 1024
    """A file above this size is written anew only when somebody asks for it, since everybody else waits meanwhile."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be erased, and on whose word."""

    scope: e.ErasureScope
    reason: str
    actor: str | None = None
    of_session_id: str | None = None
    of_run_id: str | None = None
    digest: str | None = None
    before_us: int | None = None
    erasure_id: str = ""
    """The decision, once it was taken."""
    request_id: str | None = None
    """What `actor` confirms, where another one asked for it."""
    seq_expected: int | None = None
    """The place in the ledger's own stream right after which the decision counts; None is any."""

    def decision(self) -> tuple[type[e.SystemEvent], dict[str, Any]]:
        """The event that says so in the ledger's own stream."""
        said: dict[str, Any] = {"erasure_id": self.erasure_id, "reason": self.reason, "actor": self.actor}
        said["request_id"] = self.request_id
        if self.before_us is not None:
            return e.RetentionDecided, said | {"before_us": self.before_us}
        about = {"of_session_id": self.of_session_id, "of_run_id": self.of_run_id, "digest": self.digest}
        return e.ErasureDecided, said | {"scope": self.scope} | about

    def carried_out(self, stage: e.ErasureStage, content_count: int, size_bytes: int) -> dict[str, Any]:
        """What a run's `content.erased` says of it."""
        figures = {"stage": stage, "content_count": content_count, "size_bytes": size_bytes}
        said = {"reason": self.reason, "actor": self.actor, "digest": self.digest}
        return {"erasure_id": self.erasure_id, "scope": self.scope} | figures | said


@dataclass(frozen=True, slots=True)
class Taken:
    """What one transaction took."""

    content_count: int = 0
    size_bytes: int = 0
    stream_ids: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()
    """Streams in which there is more."""
    unreadable: tuple[str, ...] = ()
    """Runs whose content is gone, but which could not be told, since nobody can read them."""


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """What became of an erasure."""

    erasure_id: str | None
    """The decision; None where there was nothing left to erase, or where that was only asked."""
    run_count: int = 0
    content_count: int = 0
    size_bytes: int = 0
    stage: e.ErasureStage | None = None
    """How far it has come; what is missing of `FILE` is done by `finish_erasures`."""
    problem: str | None = None
    """Why it has not come further."""
    runs_unreadable: tuple[str, ...] = ()


class ErasingStore(Protocol):
    """What erasing needs of an engine. Each call that changes something is one transaction, and may be repeated."""

    async def check(self, order: Order) -> None:
        """`RunNotFound`, `SessionNotFound` or `ContentNotFound` if there is no such thing."""

    async def targets(self, order: Order, after: str) -> list[str]:
        """The next streams, after that one, with something to erase."""

    async def count(self, order: Order) -> tuple[int, int, int]:
        """Runs, contents and bytes that there are to erase."""

    async def decide(self, order: Order) -> None:
        """Record the decision."""

    async def take(self, order: Order, stream_ids: Sequence[str]) -> Taken:
        """Erase some of what the streams hold, and say so in each."""

    async def all_taken(self, order: Order) -> None:
        """Note that nothing is left to take."""

    async def unfinished(self) -> list[tuple[Order, bool]]:
        """Erasures that are not finished, and whether all was taken."""

    async def clean_log(self) -> bool:
        """Whether the log is rid of what was erased; False if readers are in the way."""

    async def size_bytes(self) -> int:
        """Of what `rewrite` would write anew."""

    async def rewrite(self) -> None:
        """Write the file anew."""

    async def finish(self, order: Order) -> bool:
        """Say in some runs that all is done, and at last in the ledger's own stream; whether more is to be said."""


class Eraser:
    """Carries out orders on one ledger."""

    def __init__(
        self,
        store: ErasingStore,
        new_erasure_id: Callable[[], str],
        limits: ErasureLimits,
        permit: Callable[[Order], Awaitable[Order]],
    ) -> None:
        """`permit` raises where an order may not be carried out; else it says where the decision has to stand."""
        self._store = store
        self._permit = permit
        self._new_erasure_id = new_erasure_id
        self._limits = limits

    async def preview(self, order: Order) -> ErasureReport:
        """What carrying out the order would erase."""
        await self._store.check(order)
        run_count, content_count, size_bytes = await self._store.count(order)
        return ErasureReport(None, run_count, content_count, size_bytes)

    async def erase(self, order: Order, on_progress: Callable[[int], None] = lambda _: None) -> ErasureReport:
        """Carry out the order; `on_progress` hears how many runs are done, and 0 as soon as nothing refuses it."""
        await self._store.check(order)
        if not await self._store.targets(order, ""):
            on_progress(0)
            # It was erased before; but that may not have come to its end.
            is_finished = not await self._store.unfinished()
            stage, problem = (None, None) if is_finished else await self._clean(self._limits)
            return ErasureReport(None, stage=stage, problem=problem)
        order = await self._decide(replace(order, erasure_id=self._new_erasure_id()))
        reached("erasure decided")
        on_progress(0)
        tally = await self._take(order, on_progress)
        stage, problem = await self._clean(self._limits)
        return ErasureReport(
            order.erasure_id,
            len(tally.streams),
            tally.content_count,
            tally.size_bytes,
            stage,
            problem,
            tuple(sorted(tally.unreadable)),
        )

    async def finish(self) -> tuple[int, e.ErasureStage | None, str | None]:
        """Do what is left of all erasures: how many there were, how far they have come, and what is in the way."""
        unfinished = await self._store.unfinished()
        if not unfinished:
            return 0, None, None
        for order, is_taken in unfinished:
            if not is_taken:
                await self._take(order, lambda _: None)
        return len(unfinished), *await self._clean(replace(self._limits, rewrite_bytes_max=MAX_SAFE_INTEGER))

    async def repeat(
        self, orders: Sequence[Order], told: Iterable[tuple[str, str]], decided: Collection[str]
    ) -> Sequence[Order]:
        """Carry out what was decided, and done, in another copy of this ledger; `told` are erasures and streams.

        What a decision means may be less here than it was there, as runs ended at other times: so it takes both. Of
        those that were `decided` here, too, it passes over what came to its end. The orders that it carried out.
        """
        unfinished = {order.erasure_id for order, _ in await self._store.unfinished()}
        orders = [order for order in orders if order.erasure_id not in decided or order.erasure_id in unfinished]
        for order in orders:
            if order.erasure_id not in decided:
                await self._store.decide(order)
        reached("erasures decided again")
        known = {order.erasure_id: order for order in orders}
        for erasure_id, stream_id in told:
            rest: Sequence[str] = (stream_id,) if erasure_id in known else ()
            while rest:
                rest = (await self._store.take(known[erasure_id], rest)).rest
        for order in orders:
            await self._take(order, lambda _: None)
        return orders

    async def tidy(self) -> None:
        """Clean up after erasures that could not come to their end before, as far as nobody is in the way now."""
        with contextlib.suppress(LedgerUnavailable):
            if await self._store.unfinished():
                await self._clean(replace(self._limits, clean_timeout_s=0.0))

    async def _decide(self, order: Order) -> Order:
        """Record that it is decided, where nothing came between what permits it and the decision."""
        for _ in range(DECISIONS_TRIED_MAX):
            with contextlib.suppress(AppendConflict):
                permitted = await self._permit(order)
                await self._store.decide(permitted)
                return permitted
        raise LedgerUnavailable("too much is recorded about the ledger itself at the same time")

    async def _take(self, order: Order, on_progress: Callable[[int], None]) -> Tally:
        tally, done, last = Tally(), 0, ""
        while targets := await self._store.targets(order, last):
            last = targets[-1]
            rest: Sequence[str] = targets
            while rest:
                taken = await self._store.take(order, rest[:RUNS_AT_ONCE])
                tally.add(taken)
                done += len(rest[:RUNS_AT_ONCE]) - len(taken.rest)
                rest = (*taken.rest, *rest[RUNS_AT_ONCE:])
                on_progress(done)
                reached("erasure taking")
        await self._store.all_taken(order)
        reached("erasure taken")
        return tally

    async def _clean(self, limits: ErasureLimits) -> tuple[e.ErasureStage, str | None]:
        """Clean the store of what all erasures took so far; how far that came, and what was in the way."""
        # Of those whose taking ends only later, the file may still hold something.
        taken = [order for order, is_taken in await self._store.unfinished() if is_taken]
        until_s = asyncio.get_running_loop().time() + limits.clean_timeout_s
        stage: e.ErasureStage = "ROWS"
        try:
            if not await self._clean_log(until_s):
                return stage, "a reader keeps the log"
            stage = "LOG"
            reached("erasure out of the log")
            size_bytes = await self._store.size_bytes()
            if size_bytes > limits.rewrite_bytes_max:
                return stage, f"the file has {size_bytes:,} bytes, and is written anew only when asked for"
            await self._store.rewrite()
            reached("erasure out of the file")
            if not await self._clean_log(until_s):
                return stage, "a reader keeps the log"
        except LedgerUnavailable as error:
            log.warning("an erasure is not finished: %s", error.problem)
            return stage, error.problem
        for order in taken:
            while await self._store.finish(order):
                pass
        return "FILE", None

    async def _clean_log(self, until_s: float) -> bool:
        while not await self._store.clean_log():
            if asyncio.get_running_loop().time() >= until_s:
                return False
            await asyncio.sleep(POLL_S)
        return True


def run_id_of(stream_id: str) -> str:
    """The run that the stream is of."""
    return stream_id.removeprefix(run_stream(""))
