"""A ledger in a process of its own that does what it is told over a pipe, so that it can be killed at any moment."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from harness.errors import HarnessError
from harness.journal import Recorded, Submission
from ledger import Ledger, LedgerError, failpoints
from tests.faults.processes import start

KNOWN = (HarnessError, LedgerError)


class Refusal(NamedTuple):
    """What the ledger in the other process raised on purpose."""

    code: str
    facts: dict[str, Any]


class Died(Exception):
    """The process is no more."""


class ServedLedger:
    """The process, as seen by who gives the orders."""

    def __init__(self, url: str, **settings: object) -> None:
        self._program = start(serve, url, settings)

    def submit(self, submission: Submission, seq_expected: int | None = None) -> Recorded | Refusal:
        answer: Recorded | Refusal = self._ask("submit", submission, seq_expected)
        return answer

    def submit_and_die(self, submission: Submission, point: failpoints.Point | None) -> None:
        """Kill it at that point of the append, or at once where there is none; nothing is acknowledged."""
        try:
            self._ask("submit and die", submission, point)
        except Died:
            assert self._program.process.exitcode == -signal.SIGKILL
        else:
            raise AssertionError(f"{point} was not reached")

    def do(self, method: str, *args: object, **fields: object) -> Any:
        """What a method of the ledger returns, as far as it can be sent."""
        return self._ask("do", method, args, fields)

    def bodies(self, session_id: str, run_id: str) -> list[tuple[int, bytes]]:
        """Sequence numbers and bodies of a run."""
        return list(self._ask("bodies", session_id, run_id))

    def texts(self, session_id: str, run_id: str) -> list[str | None]:
        """What its tools were given, as far as it can be read, and None for what was erased."""
        return list(self._ask("texts", session_id, run_id))

    def follow(self, after: int) -> list[tuple[int, str, int]]:
        """Place, stream and sequence number of all that comes after a place, up to the end of the log."""
        return list(self._ask("follow", after))

    def close(self) -> None:
        """End it properly."""
        self._ask("close")
        self._program.process.join(30)
        assert self._program.process.exitcode == 0

    def kill(self) -> None:
        """End it at once, if it still is."""
        self._program.process.kill()
        self._program.process.join(30)
        self._program.pipe.close()

    def _ask(self, *order: object) -> Any:
        try:
            self._program.pipe.send(order)
            return self._program.pipe.recv()
        except (EOFError, OSError) as error:
            self._program.process.join(30)
            raise Died from error


async def serve(pipe: Connection, url: str, settings: dict[str, Any]) -> None:
    """Do what is told until told to close."""
    async with await Ledger.open(url, **settings) as ledger:
        while True:
            order, *args = await asyncio.to_thread(pipe.recv)
            if order == "close":
                break
            try:
                pipe.send(await ORDERS[order](ledger, *args))
            except KNOWN as error:
                facts = {name: value for name, value in vars(error).items() if isinstance(value, int | str)}
                pipe.send(Refusal(error.code, facts))
    pipe.send(None)


async def _submit(ledger: Ledger, submission: Submission, seq_expected: int | None) -> Recorded:
    return await asyncio.wrap_future(ledger.journal.submit(submission, seq_expected=seq_expected))


async def _submit_and_die(ledger: Ledger, submission: Submission, point: failpoints.Point | None) -> None:
    if point is not None:
        failpoints.arm(point, _die)
    future = ledger.journal.submit(submission)
    if point is None:
        _die()
    await asyncio.wrap_future(future)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def _do(ledger: Ledger, method: str, args: tuple[Any, ...], fields: dict[str, Any]) -> Any:
    return await getattr(ledger, method)(*args, **fields)


async def _bodies(ledger: Ledger, session_id: str, run_id: str) -> list[tuple[int, bytes]]:
    return [(event.seq, event.body) for event in await ledger.reader.events(session_id, run_id, limit=5_000)]


async def _texts(ledger: Ledger, session_id: str, run_id: str) -> list[str | None]:
    trace = await ledger.reader.trace(session_id, run_id)
    shown = [tool.input for tool in trace.tool_invocations]
    assert all(view is not None and view.state in ("stored", "erased") for view in shown)
    return [view.text for view in shown if view is not None]


async def _follow(ledger: Ledger, after: int) -> list[tuple[int, str, int]]:
    seen: list[tuple[int, str, int]] = []
    last = await ledger.reader.last_leaf()
    if last > after:
        async for leaf, event in ledger.reader.follow(after=None if after < 0 else after):
            seen.append((leaf, event.fields["stream_id"], event.seq))
            if leaf >= last:
                break
    return seen


ORDERS: dict[str, Callable[..., Awaitable[Any]]] = {
    "submit": _submit,
    "submit and die": _submit_and_die,
    "do": _do,
    "bodies": _bodies,
    "texts": _texts,
    "follow": _follow,
}
