"""A request's query as the filter of a list of runs. A field of a form that was left empty asks for nothing."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from harness.errors import InvalidInput
from ledger.run_filter import RunFilter
from ledger.words.times import moment_us
from viewer.http import queries

PLAIN = {
    "sessionId": "session_id",
    "sessionPrefix": "session_prefix",
    "agentFlow": "agent_flow",
    "agent": "agent",
    "agentVersion": "agent_version",
    "actor": "actor",
    "environment": "environment",
    "tool": "tool",
    "reason": "reason",
    "feedback": "feedback",
}
"""Parameters that are given once and taken as they are, and the field that each is."""
TIMES = {"from": "from_us", "to": "to_us"}
STATUS, LABEL, DEGRADED = "status", "label", "degraded"
"""`status` and `label` (`name=value`) may be given several times."""
PARAMETERS = (*PLAIN, *TIMES, STATUS, LABEL, DEGRADED)
_NAMES = {field: name for name, field in (PLAIN | TIMES | {LABEL: "labels"}).items()}
_BOOLEANS = {"true": True, "false": False}


def run_filter(request: Request) -> RunFilter:
    """What the request asks for; `InvalidInput` names the parameter that cannot be."""
    given: dict[str, Any] = {field: _single(request, name) for name, field in PLAIN.items()}
    for name, field in TIMES.items():
        text = _single(request, name)
        given[field] = None if text is None else moment_us(name, text)
    given["status"] = tuple(_all(request, STATUS))
    given["labels"] = dict(_label(text) for text in _all(request, LABEL))
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


def _all(request: Request, name: str) -> list[str]:
    return [text for text in request.query_params.getlist(name) if text]


def _label(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise InvalidInput(LABEL, "must be a name and a value, as name=value")
    return name, value
