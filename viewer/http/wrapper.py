"""The one shape of every JSON answer: `{"code", "message", "data"}` (SPEC D14)."""

from collections.abc import Mapping
from typing import Any

import orjson
from starlette.responses import Response

MEDIA_TYPE = "application/json"


def ok(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A success with `data`."""
    return _wrapped("ok", "ok", status, data, headers)


def error(code: str, message: str, status: int, data: Any = None, headers: Mapping[str, str] | None = None) -> Response:
    """A failure: `code` never changes, `message` is one line for people."""
    return _wrapped(code, message, status, data, headers)


def _wrapped(code: str, message: str, status: int, data: Any, headers: Mapping[str, str] | None) -> Response:
    body = dumps({"code": code, "message": message, "data": data})
    return Response(body, status, headers={"Cache-Control": "no-store", **(headers or {})}, media_type=MEDIA_TYPE)


def dumps(value: Any) -> bytes:
    """JSON bytes of what a body may hold."""
    return orjson.dumps(value, default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
