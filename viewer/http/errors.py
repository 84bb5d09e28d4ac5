"""From an exception to what a client may know of it: status, stable code, one line for people (SPEC D14)."""

import logging
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from harness.errors import HarnessError, IllegalEvent, InvalidInput, LedgerUnavailable, RunEnded, TerminationNotRecorded
from ledger.errors import LedgerError
from viewer.http.refusals import Refusal

log = logging.getLogger(__name__)

_RUN_STATUS = {"timed_out": 504, "budget_exhausted": 409, "ledger_unavailable": 503}
_LEDGER_STATUS = {
    "run_not_found": 404,
    "session_not_found": 404,
    "invalid_cursor": 400,
    "run_id_taken": 409,
    "ahead_of_log": 409,
    "too_large": 413,
    "too_many_crossings": 413,
    "ledger_address_unknown": 409,
    "bundle_too_large": 413,
    "content_not_found": 404,
    "second_person_needed": 403,
    "erasure_request_not_found": 404,
    "erasure_already_confirmed": 409,
    "erasure_request_expired": 409,
    "erasure_under_way": 409,
}
_NOT_FOUND_MESSAGES = {
    "run_not_found": "this session has no such run",
    "session_not_found": "there is no such session",
    "content_not_found": "this run has no such content",
    "erasure_request_not_found": "nobody asked to erase that",
}
_HTTP_CODES = {404: "not_found", 405: "method_not_allowed", 413: "too_large", 415: "unsupported_media_type"}


@dataclass(frozen=True, slots=True)
class Problem:
    """What went wrong, without a trace of how."""

    status: int
    code: str
    message: str
    data: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


def problem_of(error: Exception) -> Problem:
    """The problem that a client is told; everything unexpected is one and the same."""
    if isinstance(error, InvalidInput):
        return Problem(400, error.code, str(error))
    if isinstance(error, Refusal):
        return Problem(error.status, error.code, str(error), headers=error.headers)
    if isinstance(error, (RunEnded, TerminationNotRecorded)):
        ids = {"sessionId": error.session_id, "runId": error.run_id, "outcome": error.outcome}
        status = _RUN_STATUS.get(error.code, 503 if isinstance(error, TerminationNotRecorded) else 500)
        return Problem(status, error.code, str(error), ids)
    if isinstance(error, LedgerError):
        return _ledger_problem(error)
    if isinstance(error, LedgerUnavailable):
        return Problem(503, error.code, "the ledger cannot be written now")
    if isinstance(error, HTTPException):
        code = _HTTP_CODES.get(error.status_code, "http_error")
        phrase = HTTPStatus(error.status_code).phrase.lower()
        return Problem(error.status_code, code, phrase, headers=dict(error.headers or {}))
    if isinstance(error, HarnessError):
        return Problem(500, error.code, "the run could not go on")
    return Problem(500, "internal_error", "something went wrong in the server; its log says where")


def _ledger_problem(error: LedgerError) -> Problem:
    """A foreign run and an unknown one are told in the same words; a ledger that cannot be read is 503."""
    status = _LEDGER_STATUS.get(error.code, 500 if isinstance(error, IllegalEvent) else 503)
    if status == 404:
        return Problem(404, error.code, _NOT_FOUND_MESSAGES[error.code])
    if status < 500:
        return Problem(status, error.code, str(error))
    told = "the run could not go on" if status == 500 else "the ledger cannot be read now"
    return Problem(status, error.code, told)


def log_unexpected(request: Request, error: Exception) -> None:
    """Write down where it happened: the places in the code, never the exception's words, which may quote content."""
    places = " < ".join(
        f"{frame.name} {frame.filename.rpartition('/')[2]}:{frame.lineno}"
        for frame in reversed(traceback.extract_tb(error.__traceback__)[-6:])
    )
    route = getattr(request.scope.get("route"), "path", "an unknown route")
    log.error("unexpected %s at %s %s: %s", type(error).__name__, request.method, route, places)
