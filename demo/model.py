"""One question to the model, across a boundary of the run; what can go wrong with a model is one error."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx2
import openai

from demo.errors import DemoError
from demo.text import is_blank, json_object, whole
from demo.tools import Sources
from harness import FailureType, Harness, OperationKind, RunContext, TokenUsage, TypedFailure
from harness.adapters.openai import Chat, ChatReply, ToolCall

Message = dict[str, Any]

CONTENT_FILTER = "content_filter"
"""Why a reply ended whose provider would not let it be said."""


class ModelFailed(DemoError):
    """The model did not answer, or not in a way that can be used; the run goes on and may fall back."""

    code = "model_failed"


@dataclass(frozen=True, slots=True)
class Choice:
    """What the model picked where it had to choose, with what it cost."""

    picked: str
    reason: str
    usage: TokenUsage | None


@dataclass(frozen=True, slots=True)
class Trip:
    """What a piece of work needs: the run it belongs to, and the means to cross that run's boundaries."""

    run: RunContext
    harness: Harness
    chat: Chat
    sources: Sources

    def branch(self, key: str) -> "Trip":
        """The same means in a scope of its own (SPEC D7)."""
        return replace(self, run=self.run.branch(key))

    async def reply(self, run: RunContext, **asked: Any) -> ChatReply:
        """What the model says, as text that can be sent on; without tools to call, a text is due."""
        reply = sound(await self.chat(run, **asked))
        if reply.refusal is not None or reply.finish_reason == CONTENT_FILTER:
            raise TypedFailure(FailureType.BUSINESS_REJECTION, "the model refused", usage=reply.usage)
        if not asked.get("tools") and is_blank(reply.content or ""):
            raise TypedFailure(FailureType.MALFORMED_REPLY, "the reply has no text", usage=reply.usage)
        return reply

    async def ask(
        self,
        step: str,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        kind: OperationKind = OperationKind.DIAGNOSIS_AGENT,
    ) -> ChatReply:
        """The model's reply, as a step of this name; `ModelFailed` where there is none."""
        args = {"messages": messages, "tools": tools} if tools else {"messages": messages}
        with model_failures(step):
            return await self.harness.model(self.run, step, self.reply, args=args, kind=kind, model=self.chat.model)

    async def text(self, step: str, messages: Sequence[Message]) -> str:
        """What the model writes where it has nothing to call; never blank."""
        return (await self.ask(step, messages)).content or ""

    async def choose(
        self, step: str, messages: Sequence[Message], *, field: str, among: Collection[str], kind: OperationKind
    ) -> Choice:
        """Which of the values the model gives to `field` of a JSON object; any other reply is a malformed one."""

        async def pick(run: RunContext, **asked: Any) -> Choice:
            reply = await self.reply(run, **asked)
            said = json_object(json_in(reply.content)) or {}
            picked, reason = said.get(field), said.get("reason")
            if not isinstance(picked, str) or picked not in among:
                problem = f"the reply is not the JSON object that {step} asks for"
                raise TypedFailure(FailureType.MALFORMED_REPLY, problem, usage=reply.usage)
            return Choice(picked, reason if isinstance(reason, str) else "", reply.usage)

        args = {"messages": messages}
        with model_failures(step):
            choice: Choice = await self.harness.model(self.run, step, pick, args=args, kind=kind, model=self.chat.model)
        return choice


@contextmanager
def model_failures(step: str) -> Iterator[None]:
    """Whatever a model's client raises, as `ModelFailed`; the end of the run goes through as it is."""
    try:
        yield
    except (openai.OpenAIError, TypedFailure) as error:
        raise ModelFailed(f"the model gave no answer to {step}: {_why(error)}") from error


def _why(error: BaseException) -> str:
    """The cause in a few words; never those of a provider, which may quote what it was sent."""
    if isinstance(error, TypedFailure):
        return str(error)
    if isinstance(error, openai.APIStatusError):
        return f"it answers {error.status_code}"
    while isinstance(error, openai.APIConnectionError | httpx2.HTTPError) and error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}"


def sound(reply: ChatReply) -> ChatReply:
    """The reply as text that can be sent on; `TypedFailure` where it holds something else."""
    said = () if reply.content is None else (reply.content,)
    texts = (*said, *(text for call in reply.tool_calls for text in _texts(call)))
    if not all(isinstance(text, str) for text in texts):
        raise TypedFailure(FailureType.MALFORMED_REPLY, "the reply holds something else than text", usage=reply.usage)
    content = None if reply.content is None else whole(reply.content)
    return replace(reply, content=content, tool_calls=tuple(ToolCall(*map(whole, _texts(c))) for c in reply.tool_calls))


def _texts(call: ToolCall) -> tuple[str, str, str]:
    return call.call_id, call.name, call.arguments


def json_in(text: str | None) -> str:
    """The JSON object in a reply, which many models put between words or marks of their own."""
    text = text or ""
    return text[text.find("{") : text.rfind("}") + 1]


def system(text: str) -> Message:
    """What the model is to do."""
    return {"role": "system", "content": text}


def user(text: str) -> Message:
    """What a person asked."""
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    """What was answered before."""
    return {"role": "assistant", "content": text}
