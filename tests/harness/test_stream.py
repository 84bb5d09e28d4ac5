"""A streamed reply is one attempt, which ends exactly once, however the stream ends (CASES 9, 10)."""

import asyncio
import contextlib
import gc
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from harness import (
    AttemptTimedOut,
    CancelReason,
    Capture,
    CapturePolicy,
    FailureType,
    Harness,
    InvalidInput,
    LedgerUnavailable,
    ModelStream,
    OperationKind,
    RunContext,
    RunEnded,
    TokenUsage,
    TypedFailure,
)
from harness.boundary import received
from tests.harness.fakes import (
    HandJournal,
    each,
    harness_in_real_time,
    harness_over,
    left_with,
    limits,
    on_thread,
    only,
    say,
    types,
    until,
)


@dataclass
class Chunk:
    text: str | None = None
    usage: TokenUsage | None = None


@dataclass
class Other:
    number: int


class Model:
    """A model that gives its chunks, then hangs, raises or ends; it counts how often it was closed."""

    def __init__(self, *chunks: Any, then: BaseException | str = "end") -> None:
        self.chunks = chunks
        self.then = then
        self.opened = self.closed = 0

    async def __call__(self, run: RunContext, **args: Any) -> AsyncIterator[Any]:
        return self.stream()

    async def stream(self) -> AsyncIterator[Any]:
        self.opened += 1
        try:
            for chunk in self.chunks:
                yield chunk
            if isinstance(self.then, BaseException):
                raise self.then
            if self.then == "hang":
                await asyncio.Event().wait()
        finally:
            self.closed += 1


def ends(journal: HandJournal) -> list[str]:
    kinds = ("attempt.succeeded", "attempt.failed", "attempt.abandoned", "attempt.finished_late", "usage.settled")
    return [name for name in types(journal.events("r")) if name in kinds]


async def test_chunks_pass_as_they_come_and_the_attempt_says_when_and_how_many(
    harness: Harness, journal: HandJournal, clock: Any
):
    async def count(run: RunContext, *, to: int) -> AsyncIterator[str]:
        assert run.attempt_id in journal.state("r").open_attempts
        for number in range(to):
            clock.advance(1)
            yield f"{number} "

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        seen = []
        async for chunk in harness.stream(run, "count", count, args={"to": 3}, model="m"):
            assert "attempt.succeeded" not in types(journal.events("r"))
            seen.append(chunk)
    assert seen == ["0 ", "1 ", "2 "]
    succeeded = only(journal.events("r"), "attempt.succeeded")
    figures = (succeeded.first_output_us, succeeded.output_chunks, succeeded.duration_us)
    assert figures == (1_000_000, 3, 3_000_000)
    assert journal.contents[succeeded.output_digest].data == b"0 1 2 "
    started = only(journal.events("r"), "attempt.started")
    assert (started.kind, started.boundary, started.model) == ("model", "model/count/1/1", "m")
    assert ends(journal) == ["attempt.succeeded", "usage.settled"]
    assert journal.state("r").usage["model_calls"] == 1


@pytest.mark.parametrize(
    ("chunks", "content"),
    [
        (("a", "b"), b"ab"),
        ((Chunk("a"), Chunk(None, TokenUsage(1, 1)), Chunk("b")), b"ab"),
        ((Chunk("a"), "b"), b"ab"),
        (({"a": 1}, {"b": 2}), b'[{"a":1},{"b":2}]'),
        ((Other(1), "b"), b'[{"number":1},"b"]'),
        ((), b""),
    ],
)
async def test_the_output_is_the_text_of_the_chunks_or_else_the_list_of_them(
    harness: Harness, journal: HandJournal, chunks: tuple[Any, ...], content: bytes
):
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        stream = harness.stream(run, "say", Model(*chunks))
        assert [chunk async for chunk in stream] == list(chunks)
    assert journal.contents[only(journal.events("r"), "attempt.succeeded").output_digest].data == content


async def test_usage_on_a_text_chunk_and_on_the_last_one_is_counted_once(
    harness: Harness, journal: HandJournal
):  # CASES 10
    chunks = Chunk("a", TokenUsage(7, 1)), Chunk("b"), Chunk(None, TokenUsage(7, 3))
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        async with harness.stream(run, "say", Model(*chunks)) as stream:
            assert [chunk.text async for chunk in stream] == ["a", "b", None]
        usage = run.budget.snapshot().usage
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (7, 3, 10)


@pytest.mark.parametrize("reported", [None, TokenUsage(7, 1)])
async def test_a_stream_that_breaks_is_charged_what_it_reported_and_else_unknown(
    harness: Harness, journal: HandJournal, reported: TokenUsage | None
):  # CASES 9
    model = Model(Chunk("a", reported), then=ConnectionError("cut"))
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(ConnectionError):
            await drain(harness.stream(run, "say", model, kind=OperationKind.INTENT_ROUTER))
        snapshot = run.budget.snapshot()
    assert snapshot.usage_unknown_count == (reported is None)
    assert snapshot.usage.get("input_tokens") == (None if reported is None else 7)
    failed = only(journal.events("r"), "attempt.failed")
    assert (failed.failure, failed.will_retry, failed.output_chunks) == ("TRANSPORT", False, 1)
    assert (model.opened, model.closed) == (1, 1)


async def drain(stream: ModelStream[Any]) -> list[Any]:
    return [chunk async for chunk in stream]


@pytest.mark.parametrize("then", [ConnectionError("cut"), "end"])
async def test_a_retry_is_possible_only_until_a_chunk_was_passed_on(
    harness: Harness, journal: HandJournal, then: Any
):  # H6
    models = [Model(then=ConnectionError("refused")), Model("a", then=then), Model("never")]

    def ask(run: RunContext) -> AsyncIterator[str]:
        return models[int(run.path[-1]) - 1].stream()

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        stream = harness.stream(run, "route", ask, kind=OperationKind.INTENT_ROUTER)
        assert await anext(stream) == "a"
        with pytest.raises((ConnectionError, StopAsyncIteration)):
            await anext(stream)
    assert [(model.opened, model.closed) for model in models] == [(1, 1), (1, 1), (0, 0)]
    assert [event.attempt for event in each(journal.events("r"), "attempt.started")] == [1, 2]


async def test_a_stream_that_broke_after_a_chunk_says_why_it_was_not_tried_again(
    harness: Harness, journal: HandJournal
):  # H6
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(ConnectionError):
            await drain(
                harness.stream(run, "route", Model("a", then=ConnectionError()), kind=OperationKind.INTENT_ROUTER)
            )
    assert only(journal.events("r"), "retry.refused").reason == "OUTPUT_PASSED_ON"


async def leave_by_aclose(stream: ModelStream[Any]) -> None:
    assert await anext(stream) == "a"
    await stream.aclose()
    await stream.aclose()


async def leave_by_block(stream: ModelStream[Any]) -> None:
    async with stream:
        assert await anext(stream) == "a"


async def leave_by_break(stream: ModelStream[Any]) -> None:
    async for _ in stream:
        break
    del stream
    gc.collect()


@pytest.mark.parametrize("leave", [leave_by_aclose, leave_by_block, leave_by_break])
async def test_a_stream_that_is_left_early_ends_once_and_the_run_goes_on(
    harness: Harness, journal: HandJournal, leave: Callable[..., Any]
):
    model = Model("a", "b", then="hang")
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        await leave(harness.stream(run, "say", model))
        await until(lambda: model.closed)
        await harness.tool(run, "say", say)
    assert ends(journal) == ["attempt.failed", "usage.settled", "attempt.succeeded"]
    failed = only(journal.events("r"), "attempt.failed")
    assert (failed.failure, failed.output_chunks) == ("CANCELLED", 1)
    assert journal.state("r").outcome == "SUCCESS"


async def test_a_stream_that_was_closed_gives_nothing_more(harness: Harness, journal: HandJournal):
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        stream = harness.stream(run, "say", Model("a", "b"))
        await stream.aclose()
        assert await drain(stream) == []
    assert types(journal.events("r")) == ["run.started", "run.terminated"]


async def test_a_stream_that_is_still_open_when_the_block_is_left_is_closed_before_the_run_ends(
    harness: Harness, journal: HandJournal
):  # D4
    model = Model("a", "b")
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        stream = harness.stream(run, "say", model)
        assert await anext(stream) == "a"
    assert types(journal.events("r"))[-3:] == ["attempt.failed", "usage.settled", "run.terminated"]
    assert (model.closed, journal.state("r").outcome) == (1, "SUCCESS")
    for _ in range(2):
        with pytest.raises(RunEnded, match="SUCCESS"):
            await anext(stream)
    await stream.aclose()


async def test_a_dropped_stream_is_closed_before_the_run_ends(harness: Harness, journal: HandJournal):  # D4
    model = Model("a", "b")
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        async for _ in harness.stream(run, "say", model):
            break
    assert ends(journal) == ["attempt.failed", "usage.settled"]
    assert types(journal.events("r"))[-1] == "run.terminated"
    assert model.closed == 1


@pytest.mark.parametrize("when", ["waiting", "between", "between, from a thread"])
async def test_a_run_that_is_told_to_stop_ends_its_streams(harness: Harness, journal: HandJournal, when: str):  # H3
    model = Model("a", then="hang")
    with left_with(RunEnded, match="USER_REQUESTED"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            stream = harness.stream(run, "say", model)
            assert await anext(stream) == "a"
            signal = lambda: run.cancellation.signal(CancelReason.USER_REQUESTED)  # noqa: E731
            if when == "waiting":
                asyncio.get_running_loop().call_later(0.01, signal)
            else:
                on_thread(signal) if "thread" in when else signal()
                await until(lambda: model.closed)
            for _ in range(2 if when != "waiting" else 1):
                with pytest.raises(RunEnded, match="USER_REQUESTED"):
                    await anext(stream)
    assert ends(journal) == ["attempt.failed", "usage.settled"]
    assert only(journal.events("r"), "attempt.failed").failure == "CANCELLED"
    assert model.closed == 1
    assert not asyncio.current_task().cancelling()  # type: ignore[union-attr]


@pytest.mark.parametrize("when", ["waiting", "between"])
async def test_a_stream_is_stopped_at_the_deadline(journal: HandJournal, when: str):  # H2
    harness, model = harness_in_real_time(journal), Model("a", "b", then="hang")
    with left_with(RunEnded, match="TIMED_OUT"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=0.1) as run:
            stream = harness.stream(run, "say", model)
            assert await anext(stream) == "a"
            if when == "between":
                await asyncio.sleep(0.1)
            await drain(stream)
    assert only(journal.events("r"), "attempt.failed").failure == "DEADLINE_EXCEEDED"
    assert (ends(journal), model.closed) == (["attempt.failed", "usage.settled"], 1)


@pytest.mark.parametrize("when", ["waiting", "between"])
async def test_the_time_out_of_a_stream_is_for_the_whole_of_it(
    harness: Harness, journal: HandJournal, when: str
):  # CASES 20
    model = Model("a", "b", then="hang")
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        stream = harness.stream(run, "say", model, timeout_s=0.03, kind=OperationKind.INTENT_ROUTER)
        assert await anext(stream) == "a"
        if when == "between":
            await asyncio.sleep(0.04)
        with pytest.raises(AttemptTimedOut):
            await drain(stream)
        await harness.tool(run, "say", say)
    assert only(journal.events("r"), "attempt.failed").failure == "TIMEOUT"
    assert each(journal.events("r"), "attempt.started")[0].timeout_us == 30_000
    assert (model.closed, journal.state("r").outcome) == (1, "SUCCESS")


async def test_a_stream_that_times_out_before_its_first_chunk_is_tried_again(
    harness: Harness, journal: HandJournal
):  # H6
    models = [Model(then="hang"), Model("a")]

    def ask(run: RunContext) -> AsyncIterator[str]:
        return models[int(run.path[-1]) - 1].stream()

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        stream = harness.stream(run, "route", ask, timeout_s=0.02, kind=OperationKind.INTENT_ROUTER)
        assert await drain(stream) == ["a"]
    assert only(journal.events("r"), "attempt.failed").will_retry
    assert [model.closed for model in models] == [1, 1]


@pytest.mark.parametrize("how", ["cancel", "asyncio.timeout", "anyio.move_on_after"])
async def test_a_cancellation_from_outside_in_mid_stream_stays_one(
    harness: Harness, journal: HandJournal, how: str
):  # CASES 18
    model, inside = Model("a", then="hang"), asyncio.Event()

    async def serve() -> None:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            async for _ in harness.stream(run, "say", model):
                inside.set()

    if how == "cancel":
        serving = asyncio.create_task(serve())
        await inside.wait()
        serving.cancel("the server stops")
        with pytest.raises(asyncio.CancelledError, match="the server stops"):
            await serving
    elif how == "asyncio.timeout":
        with left_with(TimeoutError):
            async with asyncio.timeout(0.02):
                await serve()
    else:
        with anyio.move_on_after(0.02) as scope:
            await serve()
        assert scope.cancelled_caught
    assert (ends(journal), model.closed) == (["attempt.failed", "usage.settled"], 1)
    assert only(journal.events("r"), "attempt.failed").failure == "CANCELLED"
    assert journal.state("r").reason == "TASK_CANCELLED"


async def test_a_cancellation_that_the_model_raises_of_its_own_is_its_failure(
    harness: Harness, journal: HandJournal
):  # CASES 18
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(TypedFailure, match="cancelled from within"):
            await drain(harness.stream(run, "say", Model("a", then=asyncio.CancelledError())))
    assert only(journal.events("r"), "attempt.failed").failure == "CANCELLED"


async def test_a_stream_that_passes_the_runs_bytes_ends_with_its_run(harness: Harness, journal: HandJournal):  # H9, H4
    model = Model("aaaa", "bbbb", "cccc", then="hang")
    seen: list[str] = []
    with left_with(RunEnded, match="run_bytes"):
        async with harness.run(session_id="s", run_id="r", limits=limits(run_bytes=9), timeout_s=60) as run:
            async for chunk in harness.stream(run, "say", model):
                seen.append(chunk)
    assert seen == ["aaaa", "bbbb"]
    failed = only(journal.events("r"), "attempt.failed")
    assert (failed.failure, failed.output_chunks) == ("RUN_ENDED", 3)
    end = only(journal.events("r"), "run.terminated")
    assert (end.outcome, end.resource, end.limit) == ("BUDGET_EXHAUSTED", "run_bytes", 9)
    assert model.closed == 1


async def test_what_is_not_kept_is_charged_no_bytes(journal: HandJournal):  # H9
    harness = harness_over(journal, capture=CapturePolicy(model_output=Capture.DIGEST_ONLY))
    async with harness.run(session_id="s", run_id="r", limits=limits(run_bytes=2), timeout_s=60) as run:
        assert await drain(harness.stream(run, "say", Model("aaaa", "bbbb"))) == ["aaaa", "bbbb"]
    succeeded = only(journal.events("r"), "attempt.succeeded")
    assert (succeeded.output_bytes, succeeded.output_stored) == (8, False)


async def test_no_stream_fills_the_memory(harness: Harness, journal: HandJournal, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(received, "MAX_CONTENT_BYTES", 10)
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(TypedFailure, match="10 bytes") as failed:
            await drain(harness.stream(run, "say", Model("x" * 6, "x" * 6)))
        await harness.tool(run, "say", say)
    assert failed.value.failure is FailureType.MALFORMED_REPLY


async def test_a_stream_is_refused_as_any_model_step_is(harness: Harness, journal: HandJournal):  # H4, E3
    model = Model("a")
    with left_with(RunEnded, match="model_calls"):
        async with harness.run(session_id="s", run_id="r", limits=limits(model_calls=1), timeout_s=60) as run:
            assert await drain(harness.stream(run, "say", model)) == ["a"]
            await drain(harness.stream(run, "say", model))
    assert model.opened == 1
    with left_with(LedgerUnavailable):
        async with harness.run(session_id="s", run_id="r2", limits=limits(), timeout_s=60) as run:
            journal.fail_with = LedgerUnavailable("the disk is full")
            with contextlib.suppress(RunEnded):
                try:
                    await drain(harness.stream(run, "say", model))
                finally:
                    journal.fail_with = None
    assert model.opened == 1


async def test_an_estimate_of_a_stream_is_reserved_and_settled(harness: Harness, journal: HandJournal):  # H4a
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        model = Model("a", Chunk(None, TokenUsage(5, 2)))
        stream = harness.stream(run, "say", model, reserve=TokenUsage(50, 50))
        assert await anext(stream) == "a"
        assert run.budget.snapshot().usage["total_tokens"] == 100
        await drain(stream)
        assert run.budget.snapshot().usage["total_tokens"] == 7


class ByHand:
    """An iterator that is no generator, from an object that is closed with `close`, as SDKs have them."""

    def __init__(self) -> None:
        self.closed = 0

    def __aiter__(self) -> AsyncIterator[str]:
        return Model("a", "b").stream()

    async def close(self) -> None:
        self.closed += 1
        raise ConnectionError("while closing")


async def test_what_an_sdk_gives_is_closed_and_what_that_raises_harms_nobody(
    harness: Harness, journal: HandJournal, caplog: pytest.LogCaptureFixture
):
    given = ByHand()
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        assert await drain(harness.stream(run, "say", lambda run: given)) == ["a", "b"]
    assert given.closed == 1
    assert "ConnectionError" in caplog.text
    assert "while closing" not in caplog.text


async def test_what_gives_no_stream_is_a_failure_and_what_cannot_is_refused(harness: Harness, journal: HandJournal):
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(TypeError):
            await drain(harness.stream(run, "say", say))  # type: ignore[arg-type]
        for bad in (None, (number for number in range(3)), lambda_that_yields):
            with pytest.raises(InvalidInput, match="fn"):
                harness.stream(run, "say", bad)  # type: ignore[arg-type]


def lambda_that_yields(run: RunContext) -> Any:
    yield 1


async def test_streams_side_by_side_and_their_run_in_another_loop(harness: Harness, journal: HandJournal):  # D4, H1a
    model, may_drop = Model("a", "b"), threading.Event()
    held: list[Any] = []

    async def elsewhere(run: RunContext) -> None:
        stream = harness.stream(run, "say", model)
        held.append(await anext(stream))
        while not model.closed:
            await asyncio.sleep(0.001)
        may_drop.set()

    loop = asyncio.get_running_loop()
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        there = loop.run_in_executor(None, lambda: asyncio.run(elsewhere(run.branch("there"))))
        here = [drain(harness.stream(run.branch(f"{n}"), "say", Model("a", "b"))) for n in range(3)]
        assert await asyncio.gather(*here) == [["a", "b"]] * 3
        await until(lambda: held)
    assert types(journal.events("r"))[-3:] == ["attempt.failed", "usage.settled", "run.terminated"]
    await there


async def test_a_stream_in_a_loop_that_ends_with_it_has_its_end(journal: HandJournal):
    harness = harness_over(journal)
    streams: list[Any] = []

    async def main() -> None:
        run = await harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60).__aenter__()
        streams.append(harness.stream(run, "say", Model("a", "b")))
        await anext(streams[0])

    await asyncio.to_thread(lambda: asyncio.run(main()))
    assert ends(journal) == ["attempt.failed", "usage.settled"]


async def test_observers_are_told_of_a_stream_as_of_any_attempt(journal: HandJournal):  # H4
    told: list[Any] = []
    harness = harness_over(journal, observers=(told.append,))
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        assert await drain(harness.stream(run, "say", Model("a", "b"))) == ["a", "b"]
        stream = harness.stream(run, "say", Model("a", "b"))
        await anext(stream)
        await stream.aclose()
    names = [observed.event.type for observed in told]
    assert names == ["attempt.started", "attempt.succeeded", "attempt.started", "attempt.failed"]
    assert told[1].result == "ab"
    assert str(told[3].error) == "the stream was closed before its end"


async def test_a_cancellation_that_closing_a_stream_raises_of_its_own_harms_nobody(
    harness: Harness, journal: HandJournal
):  # CASES 18
    class Chunks:
        def __aiter__(self) -> "Chunks":
            return self

        async def __anext__(self) -> str:
            return "chunk"

        async def aclose(self) -> None:
            raise asyncio.CancelledError

    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        chunks = harness.stream(run, "m", lambda run: Chunks())
        await anext(chunks)
        await chunks.aclose()
    assert only(journal.events("r"), "attempt.failed").failure == "CANCELLED"
