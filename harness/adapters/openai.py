"""The `openai` client under a harness: built without retries of its own, its failures told by type (SPEC H6, H7)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.adapters.replies import SYSTEM_WALL_CLOCK, classify_sdk_error, loaded
from harness.adapters.wire import bind, is_watched, watch
from harness.budget.usage import TokenUsage, is_token_count
from harness.clock import WallClock
from harness.context import RunContext
from harness.deadline import check_timeout
from harness.hidden_retries import Declared, refuse_hidden_retries
from harness.retry import FailureType, TypedFailure

if TYPE_CHECKING:
    from openai import AsyncOpenAI

NO_RETRIES = 0


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model asks for; `arguments` is its JSON text, unchecked."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What a chat completion said."""

    model: str
    content: str | None
    tool_calls: tuple[ToolCall, ...]
    finish_reason: str | None
    usage: TokenUsage | None
    """None where the provider reported none: unknown, not 0."""
    refusal: str | None = None
    """Why the model would not answer, in its words."""


def make_async_client(
    *, base_url: str, api_key: str, timeout_s: float, hidden_retry_ends_run: bool = True
) -> AsyncOpenAI:
    """A client that sends each request once, and is watched at the wire for that; `timeout_s` bounds one request."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(
        base_url=base_url, api_key=api_key, timeout=check_timeout("timeout_s", timeout_s), max_retries=NO_RETRIES
    )
    watch(client, ends_run=hidden_retry_ends_run)
    return check_client(client)


def check_client(client: AsyncOpenAI, declared: Iterable[Declared] = ()) -> AsyncOpenAI:
    """`client` itself; `HiddenRetriesEnabled` if it or what is inside it would retry unseen by the run's record."""
    return refuse_hidden_retries(client, declared=declared)


class Chat:
    """Asks for chat completions; an operation for `Harness.model`."""

    def __init__(self, client: AsyncOpenAI, model: str, declared: Iterable[Declared] = ()) -> None:
        self._client = check_client(client, declared)
        self.model = model

    async def __call__(
        self,
        run: RunContext,
        *,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        **options: Any,
    ) -> ChatReply:
        """One request. Raises what the client raises, and `MALFORMED_REPLY` for a reply that is no completion."""
        if tools:
            options["tools"] = list(tools)
        asked: Any = [dict(message) for message in messages]
        is_bound = run.sent is not None and is_watched(self._client)
        client = bind(self._client, run) if is_bound else self._client
        # Read apart from asking, as only what the reading raises is the reply's fault.
        answer = await client.chat.completions.with_raw_response.create(model=self.model, messages=asked, **options)
        try:
            completion = answer.parse()
        except (ValueError, RecursionError) as error:
            raise TypedFailure(FailureType.MALFORMED_REPLY, "the reply is no JSON that can be read") from error
        used = _usage(completion)
        try:
            return _reply(completion, used)
        except (AttributeError, TypeError, IndexError) as error:
            raise TypedFailure(FailureType.MALFORMED_REPLY, "the reply is no chat completion", usage=used) from error


def _reply(completion: Any, used: TokenUsage | None) -> ChatReply:
    """What the provider said, read without trusting its types, which the client does not check."""
    choice = completion.choices[0]
    calls = tuple(
        ToolCall(_text(call.id), _text(call.function.name), _text(call.function.arguments))
        for call in choice.message.tool_calls or ()
        if call.type == "function"
    )
    content, finish_reason = choice.message.content, choice.finish_reason
    refusal = getattr(choice.message, "refusal", None)
    return ChatReply(
        model=_text(completion.model),
        content=None if content is None else _text(content),
        tool_calls=calls,
        finish_reason=None if finish_reason is None else _text(finish_reason),
        usage=used,
        refusal=_text(refusal) if refusal else None,
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where text is due")
    return value


def _usage(completion: Any) -> TokenUsage | None:
    """The usage that was reported; None where nothing was."""
    usage = getattr(completion, "usage", None)
    if usage is None:
        return None
    return TokenUsage(_known(getattr(usage, "prompt_tokens", None)), _known(getattr(usage, "completion_tokens", None)))


def _known(tokens: object) -> int | None:
    """The provider's count, or None where it reported something that is none."""
    return tokens if is_token_count(tokens) else None


def classify(error: BaseException, *, wall_clock: WallClock = SYSTEM_WALL_CLOCK) -> FailureType | TypedFailure | None:
    """What is known of the client's exceptions, with the delay that the provider asked for; None of any other."""
    if isinstance(error, json.JSONDecodeError):
        return FailureType.MALFORMED_REPLY
    sdk = loaded("openai")
    return None if sdk is None else classify_sdk_error(sdk, error, wall_clock)
