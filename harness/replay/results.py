"""Recorded bytes become Python values again, and recorded failures exceptions.

The type of what an operation returned is not on record: JSON becomes dictionaries whose keys are attributes too, lists,
texts and numbers; text becomes a `str`, anything else `bytes`. Who needs another type gives a decoder.
"""

from __future__ import annotations

import builtins
import contextlib
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from harness import events as e
from harness.budget.usage import TokenUsage
from harness.content import JSON
from harness.retry import FailureType, TypedFailure

Decoder: TypeAlias = Callable[[bytes], Any]
"""Makes what an operation returned of the bytes that were recorded of it, such as `Reply.model_validate_json`."""
Decoders: TypeAlias = Mapping[str, Decoder]
"""By the name of the operation, or else by its kind: `model`, `tool` or `guard`."""
Errors: TypeAlias = Mapping[str, Callable[[str], BaseException]]
"""Makes what an operation raised of its text, by the name of the exception's class; built-in ones need none."""


class RecordedObject(dict[str, Any]):
    """A JSON object; what the operation returned may have had attributes, so its keys can be read as such."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the recorded object has no {name!r}: give a decoder") from None


class RecordedChunk(str):
    """A piece of a stream's text, also for those who look for it as `text` or `content`."""

    __slots__ = ()

    @property
    def text(self) -> str:
        return str(self)

    @property
    def content(self) -> str:
        return str(self)


class RecordedFailure(TypedFailure):
    """What an operation raised, where its own class is not known: it has that class's name, and fails as recorded."""

    code = "recorded_failure"


def value_of(data: bytes, media_type: str) -> Any:
    """A recorded output without a decoder."""
    if media_type == JSON:
        return json.loads(data, object_hook=RecordedObject)
    return data.decode("utf-8", "replace") if media_type.startswith("text/") else data


def chunks_of(value: Any, count: int) -> list[Any]:
    """The chunks of a stream that gave `count`. How its text was cut is not on record: all is in the first."""
    if isinstance(value, list) and len(value) == count:
        return value
    texts = [RecordedChunk(value)] if isinstance(value, str) else [value]
    return texts[:count] + [RecordedChunk("")] * (count - 1)


def exception_of(kind: str, told: TypedFailure, errors: Errors) -> BaseException:
    """What was raised, of the class of that name; one that cannot be made again is a `RecordedFailure`."""
    text = str(told)
    make = errors.get(kind) or errors.get(kind.rpartition(".")[2]) or _built_in(kind)
    if make is not None:
        with contextlib.suppress(Exception):  # It cannot be made of a text.
            return make(text)
    named = type(kind, (RecordedFailure,), {"__qualname__": kind})
    failure: BaseException = named(told.failure, text, usage=told.usage, retry_after_s=told.retry_after_s)
    return failure


def _built_in(kind: str) -> Callable[[str], BaseException] | None:
    """Makes what is caught as the class of that name, and says the recorded text."""
    known = getattr(builtins, kind, None)
    if not isinstance(known, type) or not issubclass(known, Exception) or issubclass(known, StopIteration):
        return None  # Nothing that is awaited can raise a StopIteration.

    def make(text: str) -> BaseException:
        with contextlib.suppress(Exception):  # It takes other arguments than a text,
            plain: BaseException = known(text)
            if str(plain) == text:
                return plain
        # or says something else of it, as a KeyError does.
        saying = {"__init__": lambda _self: None, "__str__": lambda _self: text}
        error: BaseException = type(kind, (known,), saying)()
        return error

    return make


def failure_type(code: str) -> FailureType:
    """The recorded type of a failure; one that a newer program wrote is unknown here."""
    return FailureType(code) if code in FailureType.__members__ else FailureType.UNKNOWN


def usage_of(settled: e.UsageSettled | None) -> TokenUsage | None:
    """The token usage that was settled; None where it is unknown."""
    if settled is None or settled.usage is None:
        return None
    return TokenUsage(settled.usage.get("input_tokens"), settled.usage.get("output_tokens"))
