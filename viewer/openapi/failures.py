"""The ways in which any request can fail, as far as its route tells them (SPEC D14)."""

from __future__ import annotations

from collections.abc import Iterator

from ledger.errors import LedgerMissing, LedgerNotMigrated, LedgerTooNew, LedgerUnreadable, NotALedger
from viewer.access.routes import GuardedRoute
from viewer.http.describing import Described, Failure
from viewer.http.security import READING

_INVALID_INPUT = Failure(400, "invalid_input", "A parameter or a field is missing or is not acceptable; it is named.")
_FOREIGN_HOST = Failure(400, "invalid_host", "The server does not answer to the name in the `Host` header.")
_ANY = (
    _FOREIGN_HOST,
    Failure(400, "malformed_request", "It is no HTTP/1.1 that can be read in one way alone."),
    Failure(403, "foreign_origin", "A page of another origin sent it, or would load the answer into itself."),
    Failure(414, "address_too_long", "Path and query are longer than the server reads."),
    Failure(431, "headers_too_large", "There are more headers than the server reads, or longer ones."),
)
_NOT_WRITTEN = Failure(503, "ledger_unavailable", "The ledger cannot be written now.")
_UNEXPECTED = Failure(500, "internal_error", "Something went wrong in the server; its log says where.")
_NO_RUN = Failure(404, "run_not_found", "The session has no such run, whether or not another session has it.")
_NO_SESSION = Failure(404, "session_not_found", "There is no such session.")
_INVALID_CURSOR = Failure(400, "invalid_cursor", "The cursor is none that an earlier page gave.")

_CHANGING = (
    Failure(403, "read_only", "This server only reads its ledger."),
    Failure(500, "illegal_event", "What is stored of the run does not allow it."),
    _NOT_WRITTEN,
)
_ACCESS = (
    Failure(401, "unauthenticated", "Tokens are in use, and no valid one came with the request."),
    Failure(403, "forbidden", "The token has not the right, or not for this."),
    Failure(403, "foreign_form", "A form was sent with a sign-in, and not by a page of this server."),
    Failure(503, "access_not_recorded", "It could not be recorded who looks, so nothing is shown."),
)
_BODY = (
    _INVALID_INPUT,
    Failure(400, "malformed_json", "The body is no JSON object, or names a field twice."),
    Failure(408, "body_too_slow", "The body did not come to its end in time."),
    Failure(413, "body_too_large", "The body is longer than the server reads."),
    Failure(415, "unsupported_media_type", "The body is not declared as `application/json`."),
)

_UNREADABLE = tuple(
    Failure(503, error.code, "The ledger cannot be read now.")
    for error in (LedgerUnreadable, LedgerMissing, NotALedger, LedgerTooNew, LedgerNotMigrated)
)


def failures_of(route: GuardedRoute, method: str, described: Described) -> Iterator[Failure]:
    """Every failure that a request to the route can meet, once."""
    yield from dict.fromkeys(_met(route, method, described))


def _met(route: GuardedRoute, method: str, described: Described) -> Iterator[Failure]:
    yield from _ANY
    if route.needs is not None:
        yield from _ACCESS
    if route.rule is not None and route.rule.shows_content:
        yield _NOT_WRITTEN  # who looks is put on record
    if route.param_convertors or described.query:
        yield _INVALID_INPUT
    if any(parameter.name == "cursor" for parameter in described.query):
        yield _INVALID_CURSOR
    names = {*route.param_convertors, *(parameter.name for parameter in described.query if parameter.required)}
    if names & {"runId", "runA"} or _names_run(described):
        yield _NO_RUN
    elif "sessionId" in names:
        yield _NO_SESSION
    if described.body is not None:
        yield from _BODY
    if method not in READING:
        yield from _CHANGING
    yield from described.failures
    yield _UNEXPECTED
    yield from _UNREADABLE


def _names_run(described: Described) -> bool:
    return described.body is not None and "run_id" in described.body.model_fields
