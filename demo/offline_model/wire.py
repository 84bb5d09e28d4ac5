"""The part of the OpenAI chat API that the offline model speaks: requests in, completions and errors out."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MODEL_NAME = "offline-rules-1"
CHARS_PER_TOKEN = 4


class _Loose(BaseModel):
    """Settings that only matter to a real model, such as a temperature, are accepted and ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class FunctionCall(_Loose):
    name: str
    arguments: str


class ToolCall(_Loose):
    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


class TextPart(_Loose):
    type: Literal["text"]
    text: str


class Message(_Loose):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[TextPart] | None = None
    tool_calls: list[ToolCall] = Field(default_factory=list)
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class ToolFunction(_Loose):
    name: str
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)


class OfferedTool(_Loose):
    type: Literal["function"]
    function: ToolFunction


class ChatRequest(_Loose):
    model: str
    messages: list[Message] = Field(min_length=1)
    tools: list[OfferedTool] = Field(default_factory=list)
    tool_choice: str | dict[str, Any] = "auto"
    stream: bool = False
    n: int = Field(default=1, ge=1, le=1)

    @property
    def offered(self) -> frozenset[str]:
        """Names of the tools that may be called."""
        return frozenset() if self.tool_choice == "none" else frozenset(tool.function.name for tool in self.tools)


@dataclass(frozen=True, slots=True)
class WantedCall:
    """A tool call that the rules ask for."""

    name: str
    arguments: dict[str, Any]
    purpose: str
    """What it is for, as a step of a plan."""

    @property
    def arguments_json(self) -> str:
        return json.dumps(self.arguments, sort_keys=True, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the rules answer: a text, or calls, or both."""

    text: str
    calls: Sequence[WantedCall] = ()


def token_count(*texts: str) -> int:
    """Characters divided by four, rounded up: a count, though not that of any real tokenizer."""
    return math.ceil(sum(len(text) for text in texts) / CHARS_PER_TOKEN)


def completion(request: ChatRequest, reply: Reply, *, number: int, created_s: int) -> dict[str, Any]:
    """The body of a successful answer; call ids are unique in their conversation."""
    first = sum(len(message.tool_calls) for message in request.messages)
    calls = [
        {
            "id": f"call_{first + offset}",
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments_json},
        }
        for offset, call in enumerate(reply.calls)
    ]
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if calls:
        message["tool_calls"] = calls
    prompt_tokens = token_count(
        *(message.text for message in request.messages),
        *(call.function.name + call.function.arguments for message in request.messages for call in message.tool_calls),
        *(tool.model_dump_json() for tool in request.tools),
    )
    completion_tokens = token_count(reply.text, *(call.name + call.arguments_json for call in reply.calls))
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": created_s,
        "model": MODEL_NAME,
        "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop", "logprobs": None}
        ],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }


def error_body(message: str, *, param: str | None = None, code: str) -> dict[str, Any]:
    """A refused request as OpenAI clients expect it."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}
