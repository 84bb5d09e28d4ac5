"""Erasing takes two persons where two could do it: what one asked for, another one confirms (SPEC D2, E10).

Two could do it while tokens with the right `erase` have two owners or more. The rule is decided on all that the
ledger's own stream holds, where every token and every decision about erasing is told of; the decision then takes its
place right after that, or, if something came between, all is looked at again. So of two who confirm at once one does,
and nobody erases alone because of what he could not see yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import sqlalchemy as sa

from harness.clock import WallClock
from harness.events import ErasureRequested, parse_event
from harness.ids import SYSTEM_STREAM, check_id, check_name
from ledger.erasing.erasing import Order
from ledger.erasing.erasures import DECISIONS
from ledger.erasing.errors import (
    ErasureAlreadyConfirmed,
    ErasureRequestExpired,
    ErasureRequestNotFound,
    SecondPersonNeeded,
)
from ledger.reading.reader import LedgerReader
from ledger.reading.told import told_since
from ledger.records import RecordedEvent
from ledger.schema import stream
from ledger.tokens.reading import TokenReading
from ledger.tokens.records import ERASE

REQUEST_TTL_S = 7 * 24 * 3600
"""How long a request may wait for its second person."""
PERSONS = 2
REQUESTED = "erasure.requested"
HEAD = sa.select(stream.c.head_seq).where(stream.c.stream_id == SYSTEM_STREAM)


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """What somebody asked to be erased."""

    request_id: str
    order: Order
    """With the asker as its actor."""
    asked_us: int
    expires_us: int
    erasure_id: str | None = None
    """The decision, once another one confirmed it,"""
    confirmed_by: str | None = None
    """and who that was."""

    @property
    def asked_by(self) -> str:
        """The first of the two."""
        assert self.order.actor is not None, "a request names its asker"
        return self.order.actor


@dataclass(slots=True)
class TwoPersons:
    """The rule over one ledger."""

    reader: LedgerReader
    clock: WallClock
    _last_seq: int = 0
    _requests: dict[str, ErasureRequest] = field(default_factory=dict)

    async def permit(self, order: Order) -> Order:
        """The order as it may be decided, at that place of the ledger's own stream alone; raises where it may not be.

        `SecondPersonNeeded`, or for a request that cannot be confirmed: `ErasureRequestNotFound`,
        `ErasureAlreadyConfirmed`, `ErasureRequestExpired`.
        """
        await self.requests()
        # After what is told of them, so that none is missed.
        persons = await self.persons()
        permitted = replace(order, seq_expected=self._last_seq)
        if order.request_id is None:
            if len(set(map(person, persons))) >= PERSONS:
                raise SecondPersonNeeded(order.actor, None, persons)
            return permitted
        request = self._open_request(order.request_id)
        is_one_of_them = len(set(map(person, persons))) < PERSONS or order.actor in persons
        if order.actor is None or person(order.actor) == person(request.asked_by) or not is_one_of_them:
            raise SecondPersonNeeded(request.asked_by, order.actor, persons)
        return permitted

    async def confirmed(self, request_id: str, actor: str) -> Order:
        """What was asked for, as an order of the one who confirms it."""
        await self.requests()
        request = self._open_request(check_id("request_id", request_id))
        return replace(request.order, actor=check_name("actor", actor), request_id=request_id)

    async def persons(self) -> tuple[str, ...]:
        """The owners of tokens that are good for erasing."""
        now_us = self.clock.now_us()
        tokens = await TokenReading(self.reader, self.clock).all()
        return tuple(sorted({one.owner for one in tokens if ERASE in one.rights and one.state(now_us) == "active"}))

    async def requests(self) -> list[ErasureRequest]:
        """Every request that was ever made, the oldest first."""
        found, self._last_seq = await self.reader.in_one_moment(lambda connection, _: self._since(connection))
        for each in found:
            said = each.fields
            if each.type == REQUESTED:
                request = request_of(said)
                self._requests[request.request_id] = request
            elif (known := self._requests.get(said.get("request_id", ""))) is not None:
                decided = replace(known, erasure_id=said["erasure_id"], confirmed_by=said.get("actor"))
                self._requests[known.request_id] = decided
        return list(self._requests.values())

    def _since(self, connection: sa.Connection) -> tuple[list[RecordedEvent], int]:
        """What was told of erasing since the last look, and where the ledger's own stream ends."""
        found = told_since(connection, (REQUESTED, *DECISIONS), self._last_seq)
        return found, connection.execute(HEAD).scalar() or 0

    def _open_request(self, request_id: str) -> ErasureRequest:
        request = self._requests.get(request_id)
        if request is None:
            raise ErasureRequestNotFound(request_id)
        if request.erasure_id is not None:
            raise ErasureAlreadyConfirmed(request_id, request.asked_by, request.confirmed_by)
        if self.clock.now_us() >= request.expires_us:
            raise ErasureRequestExpired(request_id, request.expires_us)
        return request


def person(owner: str) -> str:
    """Who that is: one name in other letters or with other spaces is no other person's."""
    return "".join(owner.split()).casefold()


def request_of(fields: object) -> ErasureRequest:
    """The request that an event tells of."""
    assert isinstance(fields, dict)
    said = parse_event(fields)
    assert isinstance(said, ErasureRequested)
    about = (said.of_session_id, said.of_run_id, said.digest, said.before_us)
    return ErasureRequest(
        said.request_id, Order(said.scope, said.reason, said.actor, *about), said.occurred_us, said.expires_us
    )
