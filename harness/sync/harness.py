"""The harness for plain threads: the same names, each of which returns when it is done (SPEC H1a)."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, overload

from harness.block.run import RunBlock
from harness.boundary.tool_calls import ToolCall, ToolResult
from harness.context import RunContext
from harness.journal import Journal
from harness.options import GuardOptions, ModelOptions, Settings, ToolLabels, ToolOptions
from harness.run import Harness
from harness.statements import Statements
from harness.sync.loop_thread import LoopThread, refuse_in_a_loop
from harness.sync.stream import SyncModelStream

P = ParamSpec("P")
T = TypeVar("T")


def _takes(_: Callable[Concatenate[Harness, P], Any]) -> Callable[[Callable[..., T]], Callable[Concatenate[Any, P], T]]:
    """For type checkers: what is decorated takes what the named method of `Harness` takes."""
    return lambda method: method


class SyncRunBlock:
    """`with` this: a run from its durable beginning to its durable end."""

    def __init__(self, loop_thread: LoopThread, block: RunBlock) -> None:
        self._loop_thread = loop_thread
        self._block = block
        self._run: RunContext | None = None

    def __enter__(self) -> RunContext:
        """As `async with harness.run(...)`."""
        self._loop_thread.enter()
        try:
            return self._loop_thread.wait(self._begin)
        except BaseException as error:
            if self._run is None:
                self._loop_thread.leave()
            else:  # Interrupted in the moment in which it had begun.
                self.__exit__(type(error), error, error.__traceback__)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """As `async with harness.run(...)`: returns for SUCCESS only, and what is raised in the block goes on.

        A process that was forked in the block must not end the run of its parent: it gets `OtherProcess`.
        """
        if not self._loop_thread.is_here and error is not None:
            return
        try:
            if isinstance(error, GeneratorExit):
                # It may come on any thread, even on that of the loop. Nothing is waited for.
                _without_waiting(self._block.__aexit__(kind, error, trace))
            else:
                self._loop_thread.wait(lambda: self._block.__aexit__(kind, error, trace), may_cancel=False)
        finally:
            self._loop_thread.leave()

    async def _begin(self) -> RunContext:
        self._run = await self._block.__aenter__()
        return self._run


class SyncHarness(Statements):
    """A `Harness` for threads that have no event loop: its calls block, and many threads may use one run.

    What is called works elsewhere: an asynchronous function in the event loop that the harness keeps on a thread of
    its own, a plain one on one of the harness's threads. Cancelling is as cooperative as ever: the waiting thread is
    let go, a plain function in flight runs on. `close`, or `with`, ends that thread; it keeps no process from exiting.

    On the thread of a running event loop every call that would block it raises `RunningLoop`.
    """

    def __init__(self, journal: Journal, **settings: Unpack[Settings]) -> None:
        """`settings` are those of `Harness`."""
        self._harness = Harness(journal, **settings)
        super().__init__(self._harness._engine)
        self._loop_thread = LoopThread()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let no further run begin, which gets `HarnessClosed`; the thread ends when the last open run has ended."""
        self._loop_thread.close()

    @_takes(Harness.run)
    def run(self, **fields: Any) -> SyncRunBlock:
        """A run to enter with `with`; takes what `Harness.run` takes."""
        return SyncRunBlock(self._loop_thread, self._harness.run(**fields))

    @overload
    def model(
        self, run: RunContext, name: str, fn: Callable[..., Awaitable[T]], **options: Unpack[ModelOptions]
    ) -> T: ...

    @overload
    def model(self, run: RunContext, name: str, fn: Callable[..., T], **options: Unpack[ModelOptions]) -> T: ...

    def model(self, run: RunContext, name: str, fn: Callable[..., Any], **options: Any) -> Any:
        """As `Harness.model`: call `fn(run, **args)` as a model step."""
        return self._wait(run, lambda: self._harness.model(run, name, fn, **options))

    def stream(
        self,
        run: RunContext,
        name: str,
        fn: Callable[..., AsyncIterable[T] | Awaitable[AsyncIterable[T]]],
        **options: Unpack[ModelOptions],
    ) -> SyncModelStream[T]:
        """As `Harness.stream`: call `fn(run, **args)` as a model step, and pass its chunks on as they come."""
        refuse_in_a_loop()
        return SyncModelStream(self._loop_thread, self._harness.stream(run, name, fn, **options))

    @overload
    def guard(
        self, run: RunContext, name: str, fn: Callable[..., Awaitable[T]], **options: Unpack[GuardOptions]
    ) -> T: ...

    @overload
    def guard(self, run: RunContext, name: str, fn: Callable[..., T], **options: Unpack[GuardOptions]) -> T: ...

    def guard(self, run: RunContext, name: str, fn: Callable[..., Any], **options: Any) -> Any:
        """As `Harness.guard`: call `fn(run, **args)` as a guard."""
        return self._wait(run, lambda: self._harness.guard(run, name, fn, **options))

    @overload
    def tool(
        self, run: RunContext, name: str, fn: Callable[..., Awaitable[T]], /, **options: Unpack[ToolOptions]
    ) -> T: ...

    @overload
    def tool(self, run: RunContext, name: str, fn: Callable[..., T], /, **options: Unpack[ToolOptions]) -> T: ...

    @overload
    def tool(
        self,
        run: RunContext,
        name: Callable[Concatenate[RunContext, P], Awaitable[T]],
        /,
        **labels: Unpack[ToolLabels],
    ) -> Callable[P, T]: ...

    @overload
    def tool(
        self, run: RunContext, name: Callable[Concatenate[RunContext, P], T], /, **labels: Unpack[ToolLabels]
    ) -> Callable[P, T]: ...

    def tool(
        self, run: RunContext, name: str | Callable[..., Any], fn: Callable[..., Any] | None = None, /, **options: Any
    ) -> Any:
        """As `Harness.tool`: call `fn(run, **args)` as a tool, or `tool(run, fn)(**args)` (SPEC D11)."""
        if isinstance(name, str) and fn is not None:
            return self._wait(run, lambda: self._harness.tool(run, name, fn, **options))
        curried: Any = self._harness.tool
        curried = curried(run, name, fn, **options)
        return lambda *args, **kwargs: self._wait(run, lambda: curried(*args, **kwargs))

    def tools(self, run: RunContext, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """As `Harness.tools`: a batch that starts all or none of its calls, and works side by side (SPEC D6)."""
        return self._wait(run, lambda: self._harness.tools(run, calls))

    def _wait(self, run: RunContext, start: Callable[[], Awaitable[T]]) -> T:
        refuse_in_a_loop()
        if run.live.termination is not None:
            raise run.live.ended()
        return self._loop_thread.wait(start)


def _without_waiting(closing: Any) -> None:
    """Drive a coroutine that awaits nothing to its end."""
    try:
        closing.send(None)
    except StopIteration:
        return
    raise AssertionError("it waited")
