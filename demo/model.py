"""One question to the model, across a boundary of the run; what can go wrong with a model is one error."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import openai

from demo.errors import DemoError
from demo.tools import Sources
from harness import Harness, OperationKind, RunContext, TypedFailure
from harness.adapters.openai import Chat, ChatReply

Message = dict[str, Any]


class ModelFailed(DemoError):
    """The model did not answer, or not in a way that can be used; the run goes on and may fall back."""

    code = "model_failed"


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
            return await self.harness.model(self.run, step, self.chat, args=args, kind=kind, model=self.chat.model)


@contextmanager
def model_failures(step: str) -> Iterator[None]:
    """Whatever a model's client raises, as `ModelFailed`; the end of the run goes through as it is."""
    try:
        yield
    except (openai.OpenAIError, TypedFailure, json.JSONDecodeError) as error:
        raise ModelFailed(f"the model gave no answer to {step}: {type(error).__name__}") from error


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
