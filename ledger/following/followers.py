"""Followers that go on where they were, in whatever process they are started again (SPEC E8).

What a follower writes into the ledger's own database is stored together with how far it has come: nothing is applied
twice or skipped. What it does elsewhere can be done again after a crash, and is never skipped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple, NoReturn, Protocol

from harness.errors import InvalidInput
from harness.ids import check_name
from ledger.following.following import Follower
from ledger.following.leaves import START, Leaf, Wanted
from ledger.reading.reader import LedgerReader

Write = Callable[[Any, list[Leaf]], Any]
Send = Callable[[list[Leaf]], Awaitable[object]]
OnConnection = Callable[[Any], Any]
ENDED = "has ended the transaction, so what it wrote and the follower's place are not one"


class FollowerPlace(NamedTuple):
    """How far a named follower has come, of what it wants."""

    place: int
    wanted: Wanted


class FollowerPlaces(Protocol):
    """Where the places of named followers are stored."""

    async def all(self) -> dict[str, FollowerPlace]:
        """Each by name."""

    async def advance(self, name: str, before: int, after: FollowerPlace, write: OnConnection | None) -> bool:
        """Store the place, together with what `write` does on the connection; False if the last one is not `before`.

        What `write` raises goes on unchanged, and then nothing is stored.
        """

    async def forget(self, name: str) -> bool:
        """Drop a place; whether there was one."""


class Followers:
    """The named followers of an open ledger."""

    def __init__(self, places: FollowerPlaces, reader: LedgerReader) -> None:
        self._places = places
        self._reader = reader

    async def apply(
        self, name: str, write: Write, *, run: tuple[str, str] | None = None, session: str | None = None
    ) -> NoReturn:
        """Go on for ever calling `write(connection, events)`, each event exactly once, in the public order.

        It writes what it likes to tables of its own in the ledger's database; that, and the follower's place, are one
        transaction, which it must not end. On SQLite it is a plain function that gets the `sqlite3.Connection` of the
        ledger's writer, in its thread: appends wait meanwhile. On PostgreSQL it is a coroutine function that gets an
        `asyncpg.Connection`, in the ledger's own loop.

        What it raises ends this call, and leaves the events unapplied. Under one name several may run: one at a time
        comes forward, and all want the same, or it is `InvalidInput`.
        """
        await self._go_on(name, write, run, session)

    async def deliver(
        self, name: str, send: Send, *, run: tuple[str, str] | None = None, session: str | None = None
    ) -> NoReturn:
        """Go on for ever awaiting `send(events)`, each event at least once, in the public order.

        The place is stored after `send` has returned: after a crash in between, the same events are sent again.
        """
        await self._go_on(name, None, run, session, send)

    async def places(self) -> dict[str, int]:
        """How far each named follower has come: the place of the last event that it has done with."""
        return {name: stored.place for name, stored in (await self._places.all()).items()}

    async def forget(self, name: str) -> bool:
        """Let the follower of that name begin anew when it is next started; False if there is none."""
        return await self._places.forget(check_name("name", name))

    async def _go_on(
        self,
        name: str,
        write: Write | None,
        run: tuple[str, str] | None,
        session: str | None,
        send: Send | None = None,
    ) -> NoReturn:
        check_name("name", name)
        wanted = Wanted.of(run, session)
        follower = await self._resume(name, run, session)
        while True:
            before = follower.position
            page = await follower.page()
            if send is not None:
                await send(page)
            on_connection = None if write is None else partial(_write, write, page)
            after = FollowerPlace(follower.position, wanted)
            if not await self._places.advance(name, before, after, on_connection):
                # Another has come forward under that name.
                follower = await self._resume(name, run, session)

    async def _resume(self, name: str, run: tuple[str, str] | None, session: str | None) -> Follower:
        wanted = Wanted.of(run, session)
        last = (await self._places.all()).get(name, FollowerPlace(START, wanted))
        if last.wanted != wanted:
            raise InvalidInput("name", f"{name} follows {last.wanted}, not {wanted}: forget it, or take another name")
        return self._reader.follow(last.place, run=run, session=session)


def _write(write: Write, page: list[Leaf], connection: Any) -> Any:
    return write(connection, page)
