"""Erasing for programs: asking for it, confirming what another one asked for, and how far each has come (SPEC E10)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from harness.errors import InvalidInput
from harness.ids import check_code, check_id
from ledger.erasing.errors import (
    ErasureAlreadyConfirmed,
    ErasureRequestExpired,
    ErasureRequestNotFound,
    SecondPersonNeeded,
)
from ledger.errors import ContentNotFound, SessionNotFound
from viewer.access.guard import session_for
from viewer.access.principal import owner_in
from viewer.access.routes import GuardedRoute, Right
from viewer.api import erasing_shapes as shapes
from viewer.api.bodies import instant_or_null
from viewer.api.filters import SESSION_PREFIX
from viewer.api.writing import ID
from viewer.erasing.carrying_out import Erasures, ErasureUnderWay
from viewer.erasing.known import Erasure, What
from viewer.http import queries, wrapper
from viewer.http.describing import Described, Failure
from viewer.http.json_body import JsonBody, read_body

LISTED_MAX = 200
"""The newest; what is older is in `GET /api/audit/events`."""
NEEDED = {"RUN": {"run_id"}, "SESSION": set[str](), "DIGEST": {"run_id", "digest"}}
"""What each scope is named by, beside its session."""
NAMES = {"run_id": "runId", "digest": "digest"}
UNDER_WAY = Failure(409, ErasureUnderWay.code, "This server is carrying out another erasure.")
REFUSED = Failure(403, SecondPersonNeeded.code, "Another one of those who may erase has to do this.")
NOT_FOUND = Failure(404, ErasureRequestNotFound.code, "Nobody asked for that.")
NOT_OPEN = (
    Failure(409, ErasureAlreadyConfirmed.code, "It was confirmed before."),
    Failure(409, ErasureRequestExpired.code, "Nobody confirmed it in time; it can be asked for again."),
)
NOTHING_THERE = (
    Failure(404, SessionNotFound.code, "There is no such session."),
    Failure(404, ContentNotFound.code, "The run has no such content."),
)


def _variant(scope: str, needed: set[str]) -> dict[str, Any]:
    others = [{"required": [NAMES[name]]} for name in NAMES if name not in needed]
    is_it: dict[str, Any] = {
        "properties": {"scope": {"const": scope}},
        "required": sorted(map(NAMES.__getitem__, needed)),
    }
    return is_it | ({"not": {"anyOf": others}} if others else {})


class ErasureBody(JsonBody):
    """`POST /api/erasures`: all contents of a run or of a session, or one content of a run, by its digest."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [_variant(scope, needed) for scope, needed in NEEDED.items()]}
    )

    scope: Literal["RUN", "SESSION", "DIGEST"]
    """Said in words, so that nobody who forgets an id erases more than he meant."""
    session_id: str = Field(alias="sessionId", json_schema_extra=ID)
    run_id: str = Field(default="", alias="runId", json_schema_extra=ID)
    digest: str = Field(default="", json_schema_extra={"pattern": "^[0-9a-f]{64}$"})
    reason: str = Field(default="REQUESTED", json_schema_extra={"pattern": "^[A-Za-z][A-Za-z0-9_.]{0,63}$"})

    def what(self, session_id: str) -> What:
        """The same, checked, for the session as whoever asks may see it."""
        for name, given in NAMES.items():
            is_given, is_needed = name in self.model_fields_set, name in NEEDED[self.scope]
            if is_given != is_needed:
                raise InvalidInput(given, f"{'is required for' if is_needed else 'does not go with'} {self.scope}")
        run_id = check_id("runId", self.run_id) if "run_id" in self.model_fields_set else None
        reason = check_code("reason", self.reason)
        return What(self.scope, reason, session_id, run_id, self.digest if self.scope == "DIGEST" else None)


class Erasing:
    """The endpoints."""

    def __init__(self, erasures: Erasures) -> None:
        self._erasures = erasures

    @property
    def routes(self) -> list[GuardedRoute]:
        erase = Right.ERASE
        return [
            GuardedRoute(
                "/api/erasures",
                self.listed,
                needs=erase,
                lists_sessions=True,
                described=Described(answer=list[shapes.Erasure], query=(SESSION_PREFIX,)),
            ),
            GuardedRoute(
                "/api/erasures",
                self.ask,
                needs=erase,
                within_sessions=True,
                methods=["POST"],
                described=Described(
                    answer=shapes.Erasure,
                    status=202,
                    body=ErasureBody,
                    failures=(UNDER_WAY, REFUSED, *NOTHING_THERE),
                ),
            ),
            GuardedRoute(
                "/api/erasures/{requestId}/confirm",
                self.confirm,
                needs=erase,
                lists_sessions=True,
                methods=["POST"],
                described=Described(
                    answer=shapes.Erasure,
                    status=202,
                    failures=(UNDER_WAY, REFUSED, NOT_FOUND, *NOT_OPEN, *NOTHING_THERE),
                ),
            ),
        ]

    async def listed(self, request: Request) -> Response:
        """What was asked for and decided, the newest first, each with how far it has come."""
        found = await self._erasures.known(queries.session_prefix(request))
        return wrapper.ok([erasure_body(each) for each in found[:LISTED_MAX]])

    async def ask(self, request: Request) -> Response:
        """Erase contents for good, at once where one person suffices; else another one is to confirm it.

        `state` says which. What takes long goes on after the answer, and `GET /api/erasures` tells how far it is.
        """
        body = await read_body(request, ErasureBody)
        what = body.what(await session_for(request, check_id("sessionId", body.session_id)))
        return wrapper.ok(erasure_body(await self._erasures.ask(what, owner_in(request.scope))), 202)

    async def confirm(self, request: Request) -> Response:
        """Erase what another person asked for."""
        request_id = check_id("requestId", request.path_params["requestId"])
        done = await self._erasures.confirm(request_id, owner_in(request.scope), queries.session_prefix(request))
        return wrapper.ok(erasure_body(done), 202)


def erasure_body(erasure: Erasure) -> shapes.Erasure:
    """One erasure."""
    what = erasure.what
    return {
        "requestId": erasure.request_id,
        "erasureId": erasure.erasure_id,
        "state": erasure.state,
        "scope": what.scope,
        "sessionId": what.session_id,
        "runId": what.run_id,
        "digest": what.digest,
        "endedBefore": instant_or_null(what.before_us),
        "reason": what.reason,
        "askedBy": erasure.asked_by,
        "askedAt": instant_or_null(erasure.asked_us),
        "expiresAt": instant_or_null(erasure.expires_us),
        "decidedBy": erasure.decided_by,
        "decidedAt": instant_or_null(erasure.decided_us),
        "finishedAt": instant_or_null(erasure.finished_us),
        "contentCount": erasure.content_count,
        "sizeBytes": erasure.size_bytes,
    }
