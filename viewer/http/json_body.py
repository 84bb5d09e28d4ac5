"""Request bodies: read up to a bound and in time, as JSON, into a shape; anything else is refused, and does nothing."""

import asyncio
import json
from typing import Any, ClassVar, Final, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import ClientDisconnect, Request

from harness.errors import InvalidInput
from viewer.http.refusals import Refusal

BODY_BYTES_MAX: Final = 64 * 1024
"""A question of the longest kind in four-byte characters fits."""
BODY_BYTES_DRAINED_MAX: Final = 16 * 1024 * 1024
"""A body that is too long is read to here and thrown away, so that its sender can read the answer."""
BODY_TIMEOUT_S: Final = 15.0
"""From the first look at a body to its last byte."""


class BadBody(Refusal):
    """A body that is refused before anything is made of it."""

    code = "bad_request"
    status = 400


class MalformedJson(BadBody):
    """The body is not JSON, or not an object."""

    code = "malformed_json"


class UnsupportedMediaType(BadBody):
    """The body is not declared as what is taken; so a page of another origin cannot send it without asking first."""

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
    # What is left of it must not be taken for the next request.
    headers: ClassVar[dict[str, str]] = {"Connection": "close"}


class BodyCutOff(BadBody):
    """The client left while it sent; nobody reads the answer, it is for the access log."""

    code = "body_cut_off"
    status = 499


class JsonBody(BaseModel):
    """A shape: every field is known, and has exactly its type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


Body = TypeVar("Body", bound=JsonBody)


async def read_body(request: Request, shape: type[Body], *, may_be_empty: bool = False) -> Body:
    """The body in its shape; `BadBody` or `InvalidInput` says what is wrong. An empty one stands for `{}` if it may."""
    data = await read_bytes(request)
    if may_be_empty and not data:
        return _shaped({}, shape)
    require_media_type(request, "application/json")
    return _shaped(_parsed(data), shape)


def require_media_type(request: Request, media_type: str) -> None:
    """`UnsupportedMediaType` for a body that is declared as anything else."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != media_type:
        raise UnsupportedMediaType(f"send the body as {media_type}")


async def read_bytes(request: Request) -> bytes:
    """The body as it is, within its bounds; `BadBody` for one that is too long, too slow or cut off."""
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            return await _read(request)
    except TimeoutError:
        raise BodyTooSlow(f"the body did not come to its end within {BODY_TIMEOUT_S:.0f} s") from None
    except ClientDisconnect:
        raise BodyCutOff("the client left while it sent") from None


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


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        orjson.loads(data)
        # Python's own reader is more lenient, but it tells of names that stand twice.
        value: Any = json.loads(data, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        raise MalformedJson("the body is not valid JSON") from None
    if not isinstance(value, dict):
        raise MalformedJson("the body is not a JSON object")
    return value


def _shaped(value: dict[str, Any], shape: type[Body]) -> Body:
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        refused = fault.get("ctx", {}).get("error")
        if isinstance(refused, InvalidInput):
            raise refused from None
        field = str(fault["loc"][0])[:64] if fault["loc"] else "body"
        raise InvalidInput(field, _problem(fault["type"])) from None


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(members)
    if len(value) < len(members):
        raise MalformedJson("the body names a field twice")
    return value


def _problem(kind: str) -> str:
    return {
        "missing": "is required",
        "extra_forbidden": "is not known here",
        "string_type": "must be a string",
        "bool_type": "must be true or false",
    }.get(kind, "is not acceptable")
