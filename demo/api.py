"""Chat, at once or as a stream, clearing a conversation, and the check of the machine (SPEC R2, R7, D14)."""

from collections.abc import Awaitable, Callable
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from demo.agent import Agent
from demo.ai_ops import check_machine
from demo.bodies import AiOpsBody, ChatBody, ClearBody, read_asked
from demo.chat import Emit, answer_question, clear_conversation, stream_answer
from demo.jobs import Jobs, TooManyRuns
from demo.memory import MemoryUnavailable
from demo.sse import EventStream, EventStreamResponse
from harness import CancelReason, RunContext, RunEnded
from viewer.http import wrapper

CLIENT_CLOSED_REQUEST = 499
"""Nobody reads it; it is for the access log."""


Streamed = Callable[[Emit, Callable[[RunContext], object]], Awaitable[None]]
"""Work that emits messages, and says when its run has begun."""


class Api:
    """The endpoints over one agent."""

    def __init__(self, agent: Agent, jobs: Jobs, new_session_id: Callable[[], str]) -> None:
        self.agent = agent
        self.jobs = jobs
        self.new_session_id = new_session_id

    @property
    def routes(self) -> list[Route]:
        """What is served beside the viewer."""
        return [
            Route("/api/chat", self.chat, methods=["POST"]),
            Route("/api/chat_stream", self.chat_stream, methods=["POST"]),
            Route("/api/chat/clear", self.clear, methods=["POST"]),
            Route("/api/ai_ops", self.ai_ops, methods=["POST"]),
        ]

    async def chat(self, request: Request) -> Response:
        """Answer one question; an error after the run began carries both ids."""
        body = await read_asked(request, ChatBody)
        session_id = body.session_id or self.new_session_id()
        try:
            job = self.jobs.start(
                lambda started: answer_question(
                    self.agent, session_id, body.question, started=started, receive=request.receive
                )
            )
        except TooManyRuns as refused:
            return _refusal(refused)
        try:
            answer = await job.result()
        except RunEnded as ended:
            if ended.reason != CancelReason.CLIENT_DISCONNECTED.name:
                raise
            return Response(status_code=CLIENT_CLOSED_REQUEST)
        return wrapper.ok(
            {
                "sessionId": answer.session_id,
                "runId": answer.run_id,
                "answer": answer.text,
                "degraded": answer.degraded,
                "agentFlow": answer.flow.value,
                "turnsRemembered": answer.turns_remembered,
                "turnKept": answer.turn_kept,
                "traceUrl": trace_url(answer.session_id, answer.run_id),
            }
        )

    async def chat_stream(self, request: Request) -> Response:
        """Answer one question as a stream."""
        body = await read_asked(request, ChatBody)
        session_id = body.session_id or self.new_session_id()
        return await self._stream(
            lambda emit, started: stream_answer(self.agent, session_id, body.question, emit, started=started)
        )

    async def clear(self, request: Request) -> Response:
        """Forget the conversation of a session; its runs stay."""
        body = await read_asked(request, ClearBody)
        try:
            await clear_conversation(self.agent, body.session_id)
        except MemoryUnavailable as error:
            return wrapper.error(error.code, error.message, 503)
        return wrapper.ok({"sessionId": body.session_id})

    async def ai_ops(self, request: Request) -> Response:
        """Check the machine and stream the report."""
        body = await read_asked(request, AiOpsBody)
        session_id = body.session_id or self.new_session_id()
        return await self._stream(
            lambda emit, started: check_machine(self.agent, session_id, body.question, emit, started=started)
        )

    async def _stream(self, work: Streamed) -> Response:
        """What the work emits, as it comes; what fails before its run began is an ordinary error, and no stream."""
        stream = EventStream()
        try:
            job = self.jobs.start(lambda started: work(stream.emit, started))
        except TooManyRuns as refused:
            return _refusal(refused)
        first = await stream.next(job)
        if first is None:
            await job.task
            raise AssertionError("work that succeeds sends metadata first")
        return EventStreamResponse(stream, job, first)


def trace_url(session_id: str, run_id: str) -> str:
    """The page of one run."""
    return f"/trace?{urlencode({'sessionId': session_id, 'runId': run_id})}"


def _refusal(refused: TooManyRuns) -> Response:
    return wrapper.error(refused.code, refused.message, 429, headers={"Retry-After": "2"})
