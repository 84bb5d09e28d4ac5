"""How a function that an application hands in has to be called: in the event loop, or on a thread."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from harness.errors import InvalidInput

GENERATORS = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


def is_async(fn: Callable[..., Any]) -> bool:
    """Whether calling `fn` gives an awaitable without running anything; `InvalidInput` if it can be no operation."""
    called = getattr(fn, "__call__", None)  # noqa: B004 - what it is like is asked next
    if called is None:
        raise InvalidInput("fn", f"must be callable, and {type(fn).__name__} is not")
    # How a plain function is called says nothing more of it, and its own flags say it at once.
    if isinstance(fn, FunctionType):
        is_generator, is_coroutine = bool(fn.__code__.co_flags & GENERATORS), inspect.iscoroutinefunction(fn)
    else:
        is_generator = any(
            inspect.isgeneratorfunction(each) or inspect.isasyncgenfunction(each) for each in (fn, called)
        )
        is_coroutine = any(map(inspect.iscoroutinefunction, (fn, called)))
    if is_generator:
        raise InvalidInput(
            "fn",
            "is a generator function, whose work would happen after the boundary: "
            "return a list, or call a model that gives chunks with harness.stream",
        )
    return is_coroutine


def is_streaming(fn: Callable[..., Any]) -> bool:
    """Whether calling `fn` can give a stream; `InvalidInput` if it cannot be called, or gives a plain generator."""
    called = getattr(fn, "__call__", None)  # noqa: B004 - what it is like is asked next
    if called is None:
        raise InvalidInput("fn", f"must be callable, and {type(fn).__name__} is not")
    if inspect.isgeneratorfunction(fn) or inspect.isgeneratorfunction(called):
        raise InvalidInput(
            "fn", "is a plain generator function: write it with `async def`, since a stream is asynchronous"
        )
    return True
