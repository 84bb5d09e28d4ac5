"""What people may say of a run and ask of it: feedback, and that it be cancelled (SPEC R6, E7, D15)."""

from typing import Protocol

from pydantic import Field
from pydantic.config import JsonDict
from starlette.requests import Request
from starlette.responses import Response

from harness.errors import AlreadyTerminated
from harness.events import REQUESTABLE
from harness.ids import ID_PATTERN, check_id
from viewer.access.guard import session_for
from viewer.access.principal import may, owner_in
from viewer.access.routes import GuardedRoute, Right
from viewer.api import shapes
from viewer.http import queries, wrapper
from viewer.http.describing import Described, Failure
from viewer.http.json_body import JsonBody, read_body
from viewer.http.refusals import ReadOnly


class Writer(Protocol):
    """The part of `ledger.Ledger` that is used here."""

    async def record_feedback(
        self, session_id: str, run_id: str, *, useful: bool, comment: str | None = ..., actor: str | None = ...
    ) -> str | None:
        """Bind feedback to the run; the id of its case, if it has one. An error with code `run_not_found`."""

    async def cancel(self, session_id: str, run_id: str, *, reason: str = ..., actor: str | None = ...) -> bool:
        """Ask the run to stop; False if that was asked before. `AlreadyTerminated`, or an error as above."""


ID: JsonDict = {"pattern": f"^{ID_PATTERN}$"}
"""What `check_id` takes; it is asked later, since it says more of what is wrong."""


class FeedbackBody(JsonBody):
    """`POST /api/feedback`: both ids are needed, and no run is inferred."""

    session_id: str = Field(alias="sessionId", json_schema_extra=ID)
    run_id: str = Field(alias="runId", json_schema_extra=ID)
    useful: bool
    comment: str | None = None


class CancelBody(JsonBody):
    """`POST .../cancel`; nothing at all will do."""

    reason: str = Field(default="USER_REQUESTED", json_schema_extra={"enum": [*sorted(REQUESTABLE)]})


TOO_LARGE = Failure(413, "too_large", "The comment is larger than the ledger stores.")
HAS_ENDED = Failure(409, AlreadyTerminated.code, "The run has ended.", shapes.AlreadyEnded)


class Writing:
    """The two things that are written, and their endpoints; without a writer both are refused, with the reason."""

    def __init__(self, writer: Writer | None) -> None:
        self._writer = writer

    def takes(self, request: Request, right: Right) -> bool:
        """Whether anything can be written here, and whoever asks may write it."""
        return self._writer is not None and may(request.scope, right)

    @property
    def routes(self) -> list[GuardedRoute]:
        return [
            GuardedRoute(
                "/api/feedback",
                self.feedback,
                needs=Right.ANNOTATE,
                within_sessions=True,
                methods=["POST"],
                described=Described(answer=shapes.FeedbackBound, body=FeedbackBody, failures=(TOO_LARGE,)),
            ),
            GuardedRoute(
                "/api/diagnosis/{sessionId}/runs/{runId}/cancel",
                self.cancel,
                needs=Right.CANCEL,
                methods=["POST"],
                described=Described(
                    answer=shapes.CancellationAsked,
                    status=202,
                    body=CancelBody,
                    body_may_be_empty=True,
                    failures=(HAS_ENDED,),
                ),
            ),
        ]

    async def feedback(self, request: Request) -> Response:
        """Bind feedback to exactly that run, of which the last counts; answers with the run it was bound to."""
        self._open()
        body = await read_body(request, FeedbackBody)
        session_id = await session_for(request, check_id("sessionId", body.session_id))
        keys = session_id, check_id("runId", body.run_id)
        case_id = await self.judge(request, *keys, useful=body.useful, comment=body.comment)
        return wrapper.ok({**_ids(*keys), "useful": body.useful, "caseId": case_id})

    async def cancel(self, request: Request) -> Response:
        """Ask the run to stop, wherever it runs: 202, since it is its process that ends it; 409 once it has ended."""
        self._open()
        keys = queries.session_in_path(request), queries.run_in_path(request)
        body = await read_body(request, CancelBody, may_be_empty=True)
        try:
            is_new = await self.stop(request, *keys, reason=body.reason)
        except AlreadyTerminated as ended:
            return wrapper.error(ended.code, str(ended), 409, {**_ids(*keys), "outcome": ended.outcome})
        return wrapper.ok({**_ids(*keys), "askedBefore": not is_new}, 202)

    async def judge(
        self, request: Request, session_id: str, run_id: str, *, useful: bool, comment: str | None
    ) -> str | None:
        """Record the feedback of whoever asks; the id of the run's case, if it has one."""
        return await self._open().record_feedback(
            session_id, run_id, useful=useful, comment=comment, actor=owner_in(request.scope)
        )

    async def stop(self, request: Request, session_id: str, run_id: str, *, reason: str = "USER_REQUESTED") -> bool:
        """Record that whoever asks wants the run to stop; False if that was asked before."""
        return await self._open().cancel(session_id, run_id, reason=reason, actor=owner_in(request.scope))

    def _open(self) -> Writer:
        if self._writer is None:
            raise ReadOnly
        return self._writer


def _ids(session_id: str, run_id: str) -> dict[str, str]:
    return {"sessionId": session_id, "runId": run_id}
