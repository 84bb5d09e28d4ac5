"""Model servers for tests, spoken to over real HTTP: one that fails for a while, one that says what it is told to."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from demo.offline_model import create_offline_model
from demo.offline_model.faults import Fault, Faults
from demo.offline_model.server import reply_to
from demo.offline_model.wire import ChatRequest, Reply, WantedCall, completion
from demo.serving import OpenApp
from harness import SystemWallClock


def failing(*faults: int | str) -> OpenApp:
    """The offline model, but its first requests get these faults: a status, or a text instead of the reply's text.

    A fault of 0 lets its request through.
    """
    left = list(faults)

    def answer(request: ChatRequest) -> Reply | int:
        fault = left.pop(0) if left else 0
        if isinstance(fault, str):
            return Reply(fault)
        return fault or reply_to(request)

    return answering(answer)


def failing_from(task: str, status: int = 500) -> OpenApp:
    """The offline model, but every request for one task fails."""
    return answering(lambda request: status if task_of(request) == task else reply_to(request))


def answering(answer: Callable[[ChatRequest], Reply | int | bytes], *, delay_s: float = 0.0) -> OpenApp:
    """A server whose replies, or statuses, or bodies as they are, come from a function."""

    async def chat(request: Request) -> Response:
        asked = ChatRequest.model_validate(await request.json())
        await asyncio.sleep(delay_s)
        reply = answer(asked)
        if isinstance(reply, int):
            return JSONResponse({"error": {"message": "no", "type": "server_error", "code": None}}, status_code=reply)
        if isinstance(reply, bytes):
            return Response(reply, media_type="application/json")
        return JSONResponse(completion(asked, reply, number=1, created_s=0))

    @asynccontextmanager
    async def opened() -> AsyncIterator[Starlette]:
        # The first route that fits is taken; all but the chat is the offline model's own.
        own = create_offline_model(SystemWallClock()).routes
        yield Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"]), *own])

    return opened


class Plan:
    """What goes wrong next with the requests for each task: what is due, once each, then what stays."""

    def __init__(self) -> None:
        self.due: dict[str, list[Fault]] = {}
        self.stays: dict[str, Fault] = {}

    def __call__(self, task: str | None) -> Fault | None:
        due = self.due.get(task or "")
        return due.pop(0) if due else self.stays.get(task or "")

    def clear(self) -> None:
        """From here on nothing goes wrong."""
        self.due, self.stays = {}, {}


def with_faults(faults: Faults) -> OpenApp:
    """The offline model with its fault modes."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Starlette]:
        yield create_offline_model(SystemWallClock(), faults=faults)

    return opened


def altered(task: str, **message: Any) -> OpenApp:
    """The offline model, but its replies for one task have these fields; halves of surrogate pairs are sent, too."""

    def answer(request: ChatRequest) -> Reply | bytes:
        reply = reply_to(request)
        if task_of(request) != task:
            return reply
        body = completion(request, reply, number=1, created_s=0)
        body["choices"][0]["message"].update(message)
        return json.dumps(body).encode()

    return answering(answer)


def task_of(request: ChatRequest) -> str:
    return request.messages[0].text.split("\n", 1)[0].removeprefix("Task: ")


def calls(*wanted: tuple[str, dict[str, Any]]) -> Reply:
    """A reply that asks for tools."""
    return Reply("", [WantedCall(name, arguments, "") for name, arguments in wanted])
