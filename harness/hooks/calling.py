"""Calling an application's hooks: each is given a bounded time, and none can harm what it was called for.

As an operation, a hook may be asynchronous or plain: a plain one runs on one of the harness's threads, which it keeps
for as long as it runs, also after its time is over.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from harness.concurrency.functions import is_async
from harness.concurrency.threads import ToolThreads
from harness.concurrency.waiting import result_of
from harness.errors import InvalidInput
from harness.ids import check_name
from harness.retry import FailureType, TypedFailure

Hook: TypeAlias = Callable[[Any], Any]
"""Takes the one thing that it is called for."""

MAX_HOOKS = 16
"""Observers, and policies, of one harness; each one is awaited at every boundary that it is for."""


def check_hooks(field: str, hooks: object) -> tuple[Hook, ...]:
    """The hooks as a tuple, or `InvalidInput` that names `field`."""
    if not isinstance(hooks, tuple | list):
        raise InvalidInput(field, f"must be a tuple of callables, not {type(hooks).__name__}")
    if len(hooks) > MAX_HOOKS:
        raise InvalidInput(field, f"must be at most {MAX_HOOKS}, not {len(hooks)}")
    for number, hook in enumerate(hooks):
        is_async(hook)
        check_name(f"{field}[{number}].name", hook_name(hook))
    return tuple(hooks)


def hook_name(hook: Hook) -> str:
    """What the record calls a hook: its `name`, or that of the function or class."""
    name = getattr(hook, "name", None) or getattr(hook, "__name__", None) or type(hook).__name__
    return name if isinstance(name, str) else type(hook).__name__


async def call_hook(threads: ToolThreads, hook: Hook, subject: object, timeout_s: float) -> Any:
    """What the hook says of `subject`; its own exception if it raises, `TimeoutError` after `timeout_s` seconds.

    It runs in a task of its own, so it can cancel itself only. A cancellation of the calling task goes on.
    """
    asked = asyncio.ensure_future(_answer(threads, hook, subject))
    asked.add_done_callback(_forget)
    try:
        await asyncio.wait({asked}, timeout=timeout_s)
    finally:
        asked.cancel()
    if not asked.done():
        raise TimeoutError(f"no answer in {timeout_s} s")
    if asked.cancelled():
        raise TypedFailure(FailureType.CANCELLED, "the hook was cancelled from within")
    return asked.result()


async def _answer(threads: ToolThreads, hook: Hook, subject: object) -> Any:
    try:
        answer = hook(subject) if is_async(hook) else await _on_thread(threads, partial(hook, subject))
        return await answer if inspect.isawaitable(answer) else answer
    except (Exception, asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit):
        # The last two mean the program where they are raised in its loop.
        raise
    except BaseException as error:
        raise _raised(error) from error


async def _on_thread(threads: ToolThreads, call: partial[Any]) -> Any:
    answered = threads.submit(call)
    try:
        return await result_of(answered)
    except asyncio.CancelledError:
        answered.cancel()
        raise
    except (KeyboardInterrupt, SystemExit) as error:
        raise _raised(error) from error


def _raised(error: BaseException) -> TypedFailure:
    return TypedFailure(FailureType.UNKNOWN, f"the hook raised {type(error).__name__}")


def _forget(asked: asyncio.Future[Any]) -> None:
    """Nobody waits for this answer any more, whatever it is."""
    if not asked.cancelled():
        asked.exception()
