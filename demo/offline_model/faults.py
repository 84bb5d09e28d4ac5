"""What a model's endpoint can do wrong, done on purpose: a mode for each, down to the bytes on the socket.

Only `create_offline_model(clock, faults=...)` brings them in. What is served otherwise has none, and no request can ask
for one.
"""

import socket
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from enum import Enum
from typing import Any, Final

import orjson
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from demo.offline_model.wire import error_body
from harness.clock import WallClock

Completion = dict[str, Any]

RETRY_AFTER_S: Final = 1
RETRY_AFTER_LONG_S: Final = 3_600
NO_SUCH_TOOL: Final = "restart_service"


class Fault(Enum):
    """What goes wrong with one request."""

    UNAUTHORIZED = "401"
    NOT_FOUND = "404"
    RATE_LIMITED = "429, to be tried again after so many seconds"
    RATE_LIMITED_UNTIL = "429, to be tried again at a date"
    RATE_LIMITED_FOR_LONG = "429, to be tried again after any run has ended"
    SERVER_ERROR = "500"
    RESET = "the connection is reset"
    MALFORMED_JSON = "a body that is no JSON"
    TRUNCATED = "a body that ends early"
    WRONG_TOOL = "a call of a tool that there is not"
    WRONG_ARGUMENTS = "a call with arguments that its tool does not take"
    EMPTY = "a reply that says nothing"
    REFUSAL = "a refusal"
    FILTERED = "a reply that its provider does not let through"
    NO_USAGE = "a reply that does not say what it used"
    SILENCE = "a reply that never comes"


Faults = Callable[[str | None], Fault | None]
"""By the task of a request: what goes wrong with it, or None. Called once for each request, in the server's thread."""

STATUSES: Mapping[Fault, int] = {
    Fault.UNAUTHORIZED: 401,
    Fault.NOT_FOUND: 404,
    Fault.RATE_LIMITED: 429,
    Fault.RATE_LIMITED_UNTIL: 429,
    Fault.RATE_LIMITED_FOR_LONG: 429,
    Fault.SERVER_ERROR: 500,
}


def faulty(fault: Fault, completion: Completion, clock: WallClock) -> Response:
    """The response to a request that would have got this completion."""
    if fault in STATUSES:
        body = error_body(f"on purpose: {fault.value}", code=fault.name.lower())
        return JSONResponse(body, STATUSES[fault], headers=_retry_after(fault, clock))
    whole = orjson.dumps(_altered(fault, completion))
    if fault is Fault.MALFORMED_JSON:
        return Response(whole[:-1] + b",", media_type="application/json")
    if fault in {Fault.RESET, Fault.TRUNCATED, Fault.SILENCE}:
        return _Broken(fault, whole)
    return Response(whole, media_type="application/json")


def _retry_after(fault: Fault, clock: WallClock) -> dict[str, str]:
    if fault is Fault.RATE_LIMITED_UNTIL:
        # To the second, as HTTP has it: 1 to 2 seconds from now.
        due = datetime.fromtimestamp(clock.now_us() // 1_000_000, UTC) + timedelta(seconds=RETRY_AFTER_S + 1)
        return {"Retry-After": format_datetime(due, usegmt=True)}
    seconds = {Fault.RATE_LIMITED: RETRY_AFTER_S, Fault.RATE_LIMITED_FOR_LONG: RETRY_AFTER_LONG_S}
    return {"Retry-After": str(seconds[fault])} if fault in seconds else {}


def _altered(fault: Fault, completion: Completion) -> Completion:
    """The completion, said otherwise where the fault lies in what is said."""
    if fault is Fault.NO_USAGE:
        return {key: value for key, value in completion.items() if key != "usage"}
    said: dict[Fault, Completion] = {
        Fault.EMPTY: {"content": None},
        Fault.FILTERED: {"content": "I would"},
        Fault.REFUSAL: {"content": None, "refusal": "I cannot help with that."},
        Fault.WRONG_TOOL: {"content": None, "tool_calls": [_call(NO_SUCH_TOOL, "{}")]},
        Fault.WRONG_ARGUMENTS: {"content": None, "tool_calls": [_call("host_metrics", '{"sections": ["gpu"]}')]},
    }
    if fault not in said:
        return completion
    (choice,) = completion["choices"]
    message = {"role": "assistant", "refusal": None, **said[fault]}
    finish_reason = "tool_calls" if "tool_calls" in message else "stop"
    if fault is Fault.FILTERED:
        finish_reason = "content_filter"
    return {**completion, "choices": [{**choice, "message": message, "finish_reason": finish_reason}]}


def _call(name: str, arguments: str) -> Completion:
    return {"id": "call_faulty", "type": "function", "function": {"name": name, "arguments": arguments}}


class _Broken(Response):
    """A response that does not come to its end."""

    def __init__(self, fault: Fault, whole: bytes) -> None:
        super().__init__(whole, media_type="application/json")
        self._fault = fault

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # ASGI has no word for a connection that breaks, so uvicorn's own is broken.
        transport = receive.__self__.transport  # type: ignore[attr-defined]
        if self._fault is Fault.RESET:
            # A linger of no seconds: TCP says RST, as it does when a process dies with something unread.
            linger = struct.pack("ii", 1, 0)
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            transport.abort()
        elif self._fault is Fault.TRUNCATED:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": self.body[: len(self.body) // 2], "more_body": True})
            transport.close()
        while (await receive())["type"] != "http.disconnect":
            pass
