"""Request bodies: read up to a bound, as JSON, into what the API expects; anything else creates nothing."""

import asyncio
import json
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request

from demo.bounds import BODY_BYTES_DRAINED_MAX, BODY_BYTES_MAX, BODY_TIMEOUT_S, QUESTION_CHARS_MAX
from demo.errors import DemoError
from demo.text import is_blank
from harness import InvalidInput
from harness.ids import check_id

Body = TypeVar("Body", bound="Asked")


class BadBody(DemoError):
    """A request that is refused before anything is made of it."""

    code = "bad_request"
    status = 400


class MalformedJson(BadBody):
    """The body is not JSON, or not an object."""

    code = "malformed_json"


class UnsupportedMediaType(BadBody):
    """The body is not declared as JSON; so a page of another origin cannot send it without asking first."""

    code = "unsupported_media_type"
    status = 415


class BodyTooLarge(BadBody):
    """The body is longer than the bound."""

    code = "body_too_large"
    status = 413


class BodyTooSlow(BadBody):
    """The body did not come to its end in time."""

    code = "body_too_slow"
    status = 408


class Asked(BaseModel):
    """What both endpoints have in common."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    session_id: str | None = Field(default=None, alias="sessionId")


class ChatBody(Asked):
    """`POST /api/chat`."""

    question: str


class AiOpsBody(Asked):
    """`POST /api/ai_ops`."""

    question: str | None = None


async def read_body(request: Request, shape: type[Body]) -> Body:
    """The body in its shape, its id and question checked; `BadBody` or `InvalidInput` says what is wrong."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise UnsupportedMediaType("send the body as application/json")
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            data = await _read(request)
    except TimeoutError:
        raise BodyTooSlow(f"the body did not come to its end within {BODY_TIMEOUT_S:.0f} s") from None
    body = _parse(data, shape)
    if body.session_id is not None:
        check_id("sessionId", body.session_id)
    question = getattr(body, "question", None)
    if question is not None:
        _check_question(question)
    return body


async def _read(request: Request) -> bytes:
    """What is longer than the bound is read on and dropped, within a bound of its own, so that its sender sees why."""
    kept = bytearray()
    size_bytes = 0
    async for part in request.stream():
        size_bytes += len(part)
        if size_bytes <= BODY_BYTES_MAX:
            kept += part
        else:
            kept.clear()
        if size_bytes > BODY_BYTES_DRAINED_MAX:
            break
    if size_bytes > BODY_BYTES_MAX:
        raise BodyTooLarge(f"the body is longer than {BODY_BYTES_MAX} bytes")
    return bytes(kept)


def _parse(data: bytes, shape: type[Body]) -> Body:
    try:
        orjson.loads(data)
        # Python's own reader is more lenient, but it tells of names that stand twice.
        value: Any = json.loads(data, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        raise MalformedJson("the body is not valid JSON") from None
    if not isinstance(value, dict):
        raise MalformedJson("the body is not a JSON object")
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        field = str(fault["loc"][0])[:64] if fault["loc"] else "body"
        raise InvalidInput(field, _problem(fault["type"])) from None


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(members)
    if len(value) < len(members):
        raise MalformedJson("the body names a field twice")
    return value


def _problem(kind: str) -> str:
    return {
        "missing": "is missing",
        "extra_forbidden": "is not known here",
        "string_type": "must be a string",
    }.get(kind, "is not acceptable")


def _check_question(question: str) -> None:
    if is_blank(question):
        raise InvalidInput("question", "must not be blank")
    if len(question) > QUESTION_CHARS_MAX:
        raise InvalidInput("question", f"must be at most {QUESTION_CHARS_MAX} characters, not {len(question)}")
