"""A request's query as the filter of a list of runs. A field of a form that was left empty asks for nothing."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import Field
from starlette.requests import Request

from harness.errors import InvalidInput
from harness.events.base import Code, Id
from harness.ids import ID_PATTERN, MAX_NAME_CHARS
from ledger.run_filter import LABELS_MAX, UNSAID, Feedback, RunFilter, labels_of
from ledger.words.times import moment_us
from viewer.api import shapes
from viewer.http import queries
from viewer.http.describing import Parameter

PLAIN = {
    "sessionId": "session_id",
    "agentFlow": "agent_flow",
    "agent": "agent",
    "agentVersion": "agent_version",
    "actor": "actor",
    "environment": "environment",
    "tool": "tool",
    "reason": "reason",
    "feedback": "feedback",
    "text": "text",
}
"""Parameters that are given once and taken as they are, and the field that each is."""
TIMES = {"from": "from_us", "to": "to_us"}
STATUS, WITHOUT, LABEL, DEGRADED = "status", "without", "label", "degraded"
"""All but the last may be given several times; a label is `name=value`."""
Unsaid = Literal["agent", "agentVersion", "agentFlow", "actor", "environment"]
"""What `without` may name: parameters above, for what a run need not say."""
_Name = Annotated[str, Field(pattern=r"^[ -~]*[!-~][ -~]*$", max_length=MAX_NAME_CHARS)]
_Time = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d(T\S+)?$")]
_Labels = Annotated[list[Annotated[str, Field(pattern=r"^[!-<>-~]{1,99}=[!-~]{1,99}$")]], Field(max_length=LABELS_MAX)]
_Prefix = Annotated[str, Field(pattern=f"^({ID_PATTERN})?$")]
SESSION_PREFIX = Parameter(queries.SESSION_PREFIX, _Prefix, "How the session's id begins; left empty, as any does.")
FILTERS = (
    Parameter("sessionId", Id, "Runs of this session."),
    SESSION_PREFIX,
    Parameter(STATUS, list[shapes.RunStatus], "Any of these."),
    Parameter("agentFlow", Code, "Such as CHAT_GRAPH."),
    *(Parameter(name, _Name, "") for name in ("agent", "agentVersion", "actor", "environment")),
    Parameter(WITHOUT, list[Unsaid], "Runs that say none of these."),
    Parameter("tool", _Name, "A tool of which the run was granted an attempt."),
    Parameter("reason", Code, "Why the run ended."),
    Parameter("feedback", Feedback, ""),
    Parameter(DEGRADED, Literal["true", "false"], ""),
    Parameter("from", _Time, "Created then or later: a day, or an RFC 3339 time with its offset."),
    Parameter("to", _Time, "And before that."),
    Parameter(LABEL, _Labels, "`name=value`; all of these."),
)
"""The same parameters, as the API describes them."""
_NAMES = {field: name for name, field in (PLAIN | TIMES | {LABEL: "labels"}).items()}
_BOOLEANS = {"true": True, "false": False}


def run_filter(request: Request) -> RunFilter:
    """What the request asks for; `InvalidInput` names the parameter that cannot be."""
    given: dict[str, Any] = {field: _single(request, name) for name, field in PLAIN.items()}
    for name, field in TIMES.items():
        text = _single(request, name)
        given[field] = None if text is None else moment_us(name, text)
    given["session_prefix"] = queries.session_prefix(request)
    given["status"] = tuple(_all(request, STATUS))
    given["without"] = tuple(_unsaid(name) for name in _all(request, WITHOUT))
    given["labels"] = labels_of(LABEL, _all(request, LABEL))
    degraded = _single(request, DEGRADED)
    if degraded is not None:
        if degraded not in _BOOLEANS:
            raise InvalidInput(DEGRADED, "must be true or false")
        given["degraded"] = _BOOLEANS[degraded]
    try:
        return RunFilter(**given)
    except InvalidInput as error:
        raise InvalidInput(_NAMES.get(error.field, error.field), error.problem) from error


def _single(request: Request, name: str) -> str | None:
    return queries.single(request, name) or None


def _unsaid(name: str) -> str:
    field = PLAIN.get(name)
    if field not in UNSAID:
        raise InvalidInput(WITHOUT, f"must be some of {', '.join(get_args(Unsaid))}")
    return field


def _all(request: Request, name: str) -> list[str]:
    return [text for text in request.query_params.getlist(name) if text]
