"""The offline model over HTTP: chat completions with tools, the list of models, and a health check."""

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Final

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from demo.offline_model import answers, tasks
from demo.offline_model.faults import Faults, faulty
from demo.offline_model.wire import MODEL_NAME, ChatRequest, Message, Reply, WantedCall, completion, error_body
from demo.rules.results import Result, parse_result
from demo.rules.topics import subject_of
from harness.clock import WallClock

BODY_BYTES_MAX: Final = 8 * 1024 * 1024
CALLS_PER_REPLY_MAX: Final = 8
TASK_PREFIX = "Task: "


def create_offline_model(clock: WallClock, *, faults: Faults | None = None) -> Starlette:
    """The application; it keeps nothing from one request to the next but a counter. `faults` are for tests."""
    numbers = itertools.count(1)

    async def chat_completions(request: Request) -> Response:
        try:
            asked = ChatRequest.model_validate(json.loads(await _body(request)))
        except ValidationError as error:
            fault = error.errors()[0]
            param = ".".join(map(str, fault["loc"]))
            return _refused(400, f"{param or 'body'}: {fault['msg']}", param=param or None, code="invalid_value")
        except (ValueError, RecursionError):
            return _refused(400, "The body is not valid JSON.", code="invalid_json")
        if asked.model != MODEL_NAME:
            unknown = f"The model {asked.model[:64]!r} does not exist."
            return _refused(404, unknown, param="model", code="model_not_found")
        if asked.stream:
            return _refused(400, "This model does not stream.", param="stream", code="unsupported_value")
        answer = completion(asked, reply_to(asked), number=next(numbers), created_s=clock.now_us() // 1_000_000)
        due = None if faults is None else faults(_task(asked))
        return JSONResponse(answer) if due is None else faulty(due, answer, clock)

    async def models(_: Request) -> Response:
        model = {"id": MODEL_NAME, "object": "model", "created": 0, "owned_by": "tachograph-demo"}
        return JSONResponse({"object": "list", "data": [model]})

    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "ok", "model": MODEL_NAME})

    return Starlette(
        routes=[
            Route("/v1/chat/completions", chat_completions, methods=["POST"]),
            Route("/v1/models", models),
            Route("/healthz", healthz),
        ],
        exception_handlers={HTTPException: _http_error},
    )


def reply_to(request: ChatRequest) -> Reply:
    """Do the task that the first system message names; without one, investigate if tools are offered, else chat."""
    questions = [message.text for message in request.messages if message.role == "user"]
    subject = subject_of(questions[-1] if questions else "", questions[:-1])
    results = _results(request.messages)
    task = _task(request) or ("investigate" if request.offered else "answer" if results else "chat")
    if task == "route":
        return Reply(tasks.route(subject))
    if task == "plan":
        return Reply(tasks.plan(subject, request.offered))
    if task == "judge":
        return Reply(tasks.judge(subject, results))
    if task in {"investigate", "repair"}:
        made = {(call.function.name, call.function.arguments) for m in request.messages for call in m.tool_calls}
        calls = _unmade(tasks.next_calls(subject, results, repair=task == "repair"), made, request.offered)
        if calls:
            return Reply("", calls)
        if _task(request):
            return Reply(f"The evidence is collected: {len(results)} tool results.")
    return Reply(answers.answer(subject, results) if task != "chat" else answers.chat(subject.question))


def _unmade(calls: Iterable[WantedCall], made: set[tuple[str, str]], offered: frozenset[str]) -> list[WantedCall]:
    """The calls that can be made and were not made before, none twice."""
    fresh: dict[tuple[str, str], WantedCall] = {}
    for call in calls:
        key = (call.name, call.arguments_json)
        if call.name in offered and key not in made:
            fresh.setdefault(key, call)
    return list(fresh.values())[:CALLS_PER_REPLY_MAX]


def _results(messages: Sequence[Message]) -> tuple[Result, ...]:
    """The calls since the last question that have an answer, in order."""
    since = max((index for index, message in enumerate(messages) if message.role == "user"), default=0)
    answers = {message.tool_call_id: message.text for message in messages[since:] if message.role == "tool"}
    calls = (call for message in messages[since:] for call in message.tool_calls if call.id in answers)
    return tuple(parse_result(call.function.name, call.function.arguments, answers[call.id]) for call in calls)


def _task(request: ChatRequest) -> str | None:
    first = request.messages[0]
    if first.role not in {"system", "developer"} or not first.text.startswith(TASK_PREFIX):
        return None
    return first.text.removeprefix(TASK_PREFIX).split("\n", 1)[0].strip().rstrip(".").lower()


async def _body(request: Request) -> bytes:
    parts: list[bytes] = []
    size_bytes = 0
    async for part in request.stream():
        size_bytes += len(part)
        if size_bytes > BODY_BYTES_MAX:
            raise HTTPException(413, f"The body is larger than {BODY_BYTES_MAX} bytes.")
        parts.append(part)
    return b"".join(parts)


def _refused(status: int, message: str, *, param: str | None = None, code: str) -> JSONResponse:
    return JSONResponse(error_body(message, param=param, code=code), status_code=status)


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    codes = {404: "not_found", 405: "method_not_allowed", 413: "request_too_large"}
    return _refused(error.status_code, error.detail, code=codes.get(error.status_code, "invalid_request"))
