"""A second request within one recorded attempt is found out at the wire, on real sockets (SPEC H7)."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest

from harness import (
    CancelReason,
    FailureType,
    Harness,
    InvalidInput,
    ManualClock,
    RetryPolicies,
    RetryPolicy,
    RunContext,
    RunEnded,
    ScopeExhausted,
    ScopeLimits,
    refuse_hidden_retries,
)
from harness.adapters import openai as openai_adapter
from harness.adapters.wire import bind, extensions, watch
from harness.concurrency.interruption import Interrupted
from harness.errors import LedgerUnavailable, ScopeNotOpen
from tests.harness.fakes import (
    HandJournal,
    each,
    harness_in_real_time,
    harness_over,
    left_with,
    limits,
    only,
    types,
    until,
)
from tests.harness.wire import Answers, completion

ASKED: Any = [{"role": "user", "content": "why?"}]
NO = {"error": {"message": "no", "type": "x"}}


@pytest.fixture
def server() -> Iterator[Answers]:
    server = Answers((500, NO))
    server.headers = {"retry-after-ms": "1"}
    yield server
    server.close()


@pytest.fixture
def harness(journal: HandJournal) -> Harness:
    return harness_in_real_time(journal)


def retrying_client(server: Answers, retries: int = 3) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=retries)


async def ask(run: RunContext, client: openai.AsyncOpenAI) -> Any:
    return await bind(client, run).chat.completions.create(model="m", messages=ASKED)


def hidden(journal: HandJournal) -> list[tuple[str, int, Any]]:
    return [
        (event.attempt_id, event.request, event.usage) for event in each(journal.events("r"), "hidden_retry.detected")
    ]


async def test_a_hidden_retry_is_recorded_charged_and_not_sent_and_ends_the_run(
    harness: Harness, journal: HandJournal, server: Answers
):  # H7, CASES 13
    reasons: list[CancelReason] = []
    async with retrying_client(server) as client:
        watch(client)
        with left_with(RunEnded, match="HIDDEN_RETRY") as ended:
            async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
                run.cancellation.on_signal(reasons.append)
                await harness.model(run, "ask", ask, args={"client": client})
    assert len(server.paths) == 1
    assert hidden(journal) == [("a1", 2, {"model_calls": 1})]
    assert (ended.value.outcome, reasons) == ("FAILED", [CancelReason.HIDDEN_RETRY])
    state = journal.state("r")
    assert (state.outcome, state.reason, state.usage["model_calls"]) == ("FAILED", "HIDDEN_RETRY", 2)
    assert types(journal.events("r"))[3:] == [
        "hidden_retry.detected",
        "cancellation.signalled",
        "attempt.failed",
        "usage.settled",
        "run.terminated",
    ]
    assert only(journal.events("r"), "attempt.failed").failure == "HIDDEN_RETRY"


@pytest.mark.parametrize(
    ("stop", "reason", "failure"),
    [
        (lambda run, clock: clock.advance(60), "DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED"),
        (lambda run, _: run.cancellation.signal(CancelReason.USER_REQUESTED), "USER_REQUESTED", "CANCELLED"),
    ],
    ids=["a deadline", "a request to cancel"],
)
async def test_the_first_request_of_an_attempt_that_comes_too_late_is_not_sent_and_accused_of_nothing(
    journal: HandJournal, server: Answers, stop: Any, reason: str, failure: str
):  # H2, H3, H7
    async def ask_too_late(run: RunContext) -> None:
        bound = bind(client, run)
        stop(run, clock)
        await bound.get(server.url)

    clock = ManualClock()
    async with httpx.AsyncClient() as client:
        watch(client)
        with left_with(RunEnded, match=reason):
            async with harness_over(journal, clock).run(
                session_id="s", run_id="r", limits=limits(), timeout_s=60
            ) as run:
                await harness_over(journal, clock).model(run, "ask", ask_too_late)
    assert (server.paths, hidden(journal)) == ([], [])
    assert only(journal.events("r"), "attempt.failed").failure == failure


@pytest.mark.parametrize("is_left", [False, True])
async def test_the_first_request_that_comes_after_its_scope_is_accused_of_nothing_either(
    journal: HandJournal, server: Answers, is_left: bool
):  # H7, D5
    async def ask_too_late(run: RunContext) -> None:
        if is_left:
            scope.__exit__(None, None, None)
        else:
            clock.advance(1)
        await client.get(server.url, extensions=extensions(run))

    clock = ManualClock()
    harness = harness_over(journal, clock)
    async with (
        httpx.AsyncClient() as client,
        harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run,
    ):
        watch(client)
        scope = harness.scope(run, "probe", timeout_s=1)
        with pytest.raises(ScopeNotOpen if is_left else ScopeExhausted):
            await harness.model(scope.__enter__(), "ask", ask_too_late)
    assert (server.paths, hidden(journal), journal.state("r").outcome) == ([], [], "SUCCESS")
    failure = "SCOPE_ENDED" if is_left else "DEADLINE_EXCEEDED"
    assert only(journal.events("r"), "attempt.failed").failure == failure


async def test_without_retries_one_attempt_is_exactly_one_request(
    harness: Harness, journal: HandJournal, server: Answers
):  # H7, CASES 13
    policies = RetryPolicies().plus(RetryPolicy("ASK", 3, frozenset({FailureType.PROVIDER_ERROR}), 0.0))
    harness = harness_over(journal, classifiers=(openai_adapter.classify,), sleep=lambda _: asyncio.sleep(0))
    async with (
        openai_adapter.make_async_client(base_url=f"{server.url}/v1", api_key="k", timeout_s=10) as client,
        harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60, policies=policies) as run,
    ):
        chat = openai_adapter.Chat(client, "m")
        server.headers = {"retry-after-ms": "0"}
        with pytest.raises(openai.InternalServerError):
            await harness.model(run, "ask", chat, args={"messages": ASKED}, kind="ASK")
        assert watch(client).unattributed == 0
    assert len(server.paths) == len(each(journal.events("r"), "attempt.started")) == 3
    assert hidden(journal) == []


async def test_the_shipped_chat_is_watched(journal: HandJournal, harness: Harness, server: Answers):  # H7
    """Even a client whose retries are turned on behind the adapter's back is found out."""
    async with openai_adapter.make_async_client(base_url=f"{server.url}/v1", api_key="k", timeout_s=10) as client:
        chat = openai_adapter.Chat(client, "m")
        client.max_retries = 2
        with left_with(RunEnded, match="HIDDEN_RETRY"):
            async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
                await harness.model(run, "ask", chat, args={"messages": ASKED})
    assert (len(server.paths), len(hidden(journal))) == (1, 1)


async def test_by_policy_a_hidden_retry_is_recorded_and_charged_and_the_run_goes_on(
    harness: Harness, journal: HandJournal, server: Answers
):  # H7
    server.answers = [(500, NO), (503, NO), (200, completion())]
    async with retrying_client(server) as client:
        watch(client, ends_run=False)
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            reply = await harness.model(run, "ask", ask, args={"client": client})
    assert reply.choices[0].message.content == "because"
    assert hidden(journal) == [("a1", 2, {"model_calls": 1}), ("a1", 3, {"model_calls": 1})]
    assert (len(server.paths), journal.state("r").usage["model_calls"]) == (3, 3)
    assert journal.state("r").outcome == "SUCCESS"


async def test_a_hidden_retry_goes_out_only_once_its_record_is_durable(
    harness: Harness, journal: HandJournal, server: Answers
):  # E3, H7
    async with retrying_client(server, 1) as client:
        watch(client, ends_run=False)
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:

            async def held(run: RunContext) -> Any:
                journal.holds = True
                return await ask(run, client)

            asking = asyncio.ensure_future(harness.model(run, "ask", held))
            await until(lambda: journal.waiting)
            assert [event.type for event in journal.waiting[0][0].events] == ["hidden_retry.detected"]
            assert len(server.paths) == 1
            journal.store_all()
            with pytest.raises(openai.InternalServerError):
                await asking
    assert len(server.paths) == 2


async def test_a_hidden_retry_that_cannot_be_recorded_does_not_go_out(
    harness: Harness, journal: HandJournal, server: Answers
):  # E3, H7
    async with retrying_client(server) as client:
        watch(client, ends_run=False)
        with left_with((RunEnded, LedgerUnavailable)):
            async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:

                async def held(run: RunContext) -> Any:
                    journal.holds = True
                    return await ask(run, client)

                asking = asyncio.ensure_future(harness.model(run, "ask", held))
                await until(lambda: journal.waiting)
                journal.holds = False
                journal.lose()
                await asking
    assert len(server.paths) == 1
    assert journal.state("r").reason == "LEDGER_UNAVAILABLE"


async def test_hidden_retries_that_pass_a_limit_end_the_run_at_it(
    harness: Harness, journal: HandJournal, server: Answers
):  # H4, H7
    async with retrying_client(server) as client:
        watch(client, ends_run=False)
        with left_with(RunEnded, match="BUDGET_EXHAUSTED"):
            async with harness.run(session_id="s", run_id="r", limits=limits(model_calls=2), timeout_s=60) as run:
                await harness.model(run, "ask", ask, args={"client": client})
    assert [request for _, request, _ in hidden(journal)] == [2, 3]
    assert len(server.paths) == 2
    assert journal.state("r").refusal == ("model_calls", 3, 2, None, None)


async def test_hidden_retries_that_pass_a_limit_of_a_nested_scope_end_that_scope(
    harness: Harness, journal: HandJournal, server: Answers
):  # D5, H7
    async with retrying_client(server) as client:
        watch(client, ends_run=False)
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            with (
                pytest.raises(ScopeExhausted, match="model_calls"),
                harness.scope(run, "planner", limits=ScopeLimits(model_calls=1)) as planner,
            ):
                await harness.model(planner, "ask", ask, args={"client": client})
    assert (len(server.paths), journal.state("r").outcome) == (1, "SUCCESS")


async def test_a_tool_on_a_thread_with_a_synchronous_client_is_stopped_at_once(
    harness: Harness, journal: HandJournal, server: Answers
):  # H7
    def look_up(run: RunContext) -> Any:
        return bind(client, run).messages.create(model="m", messages=ASKED, max_tokens=9)

    with anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=3) as client:
        watch(client)
        with left_with(RunEnded, match="HIDDEN_RETRY"):
            async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
                await harness.tool(run, "look_up", look_up)
    assert len(server.paths) == 1
    assert hidden(journal) == [("a1", 2, {"tool_calls": 1, "tool:look_up": 1})]
    assert (journal.state("r").usage["tool_calls"], journal.state("r").usage["tool:look_up"]) == (2, 2)
    assert only(journal.events("r"), "attempt.failed").failure == "HIDDEN_RETRY"


async def test_a_guard_is_charged_nothing_for_a_hidden_retry_and_its_run_ends_all_the_same(
    harness: Harness, journal: HandJournal, server: Answers
):  # H7
    async with retrying_client(server) as client:
        watch(client)
        with left_with(RunEnded, match="HIDDEN_RETRY"):
            async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
                await harness.guard(run, "check", ask, args={"client": client})
    assert hidden(journal) == [("a1", 2, None)]


async def test_a_hidden_retry_in_a_task_of_the_operation_ends_the_run_too(
    harness: Harness, journal: HandJournal, server: Answers
):  # H7
    async def ask_in_a_task(run: RunContext) -> Any:
        async with asyncio.TaskGroup() as group:
            group.create_task(ask(run, client))

    async with retrying_client(server) as client:
        watch(client)
        with left_with(RunEnded, match="HIDDEN_RETRY"):
            async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
                await harness.model(run, "ask", ask_in_a_task)
    assert (len(server.paths), len(hidden(journal))) == (1, 1)


async def test_a_hidden_retry_of_a_streamed_call_ends_the_run_too(
    harness: Harness, journal: HandJournal, server: Answers
):  # H7
    async def ask_for_chunks(run: RunContext) -> Any:
        return await bind(client, run).chat.completions.create(model="m", messages=ASKED, stream=True)

    async with retrying_client(server) as client:
        watch(client)
        with left_with(RunEnded, match="HIDDEN_RETRY"):
            async with (
                harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run,
                harness.stream(run, "ask", ask_for_chunks) as stream,
            ):
                await anext(stream)
    assert (len(server.paths), hidden(journal)) == (1, [("a1", 2, {"model_calls": 1})])
    assert only(journal.events("r"), "attempt.failed").failure == "HIDDEN_RETRY"


async def test_other_work_of_the_run_is_stopped_with_it(
    harness: Harness, journal: HandJournal, server: Answers
):  # H3, H7
    async def wait_for_ever(run: RunContext) -> None:
        await asyncio.Event().wait()

    async with retrying_client(server) as client:
        watch(client)
        with left_with(RunEnded, match="HIDDEN_RETRY"):
            async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
                waiting = asyncio.ensure_future(harness.tool(run, "wait", wait_for_ever))
                await until(lambda: len(run.live.state.open_attempts) == 1)
                with pytest.raises(RunEnded):
                    await harness.model(run, "ask", ask, args={"client": client})
                with pytest.raises(RunEnded, match="HIDDEN_RETRY"):
                    await waiting
    failures = {event.failure for event in each(journal.events("r"), "attempt.failed")}
    assert failures == {"CANCELLED", "HIDDEN_RETRY"}


async def test_a_hidden_retry_after_the_end_is_recorded_as_late_and_does_not_go_out(
    harness: Harness, journal: HandJournal, server: Answers
):  # H7, E6
    first_answered, run_ended = threading.Event(), threading.Event()

    def look_up(run: RunContext) -> None:
        bound = bind(client, run)
        bound.get(server.url)
        first_answered.set()
        run_ended.wait(timeout=30)
        bound.get(server.url)

    with httpx.Client() as client:
        watch(client)
        with left_with(RunEnded, match="USER_REQUESTED"):
            async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
                looking = asyncio.ensure_future(harness.tool(run, "look_up", look_up))
                await until(first_answered.is_set)
                run.cancellation.signal(CancelReason.USER_REQUESTED)
                with pytest.raises(RunEnded):
                    await looking
        run_ended.set()
        await until(lambda: each(journal.events("r"), "attempt.finished_late"))
    assert types(journal.events("r"))[-3:] == ["run.terminated", "hidden_retry.detected", "attempt.finished_late"]
    assert only(journal.events("r"), "attempt.finished_late").error_type == "Interrupted"
    assert (len(server.paths), journal.state("r").reason) == (1, "USER_REQUESTED")
    assert journal.state("r").usage["tool_calls"] == 2


LIBRARIES: dict[str, Any] = {"httpx": httpx, "httpx2": httpx2}
every_library = pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)


class Redirecting(Answers):
    """Sends `/old` on to `/new`, and `/loop` once to itself."""

    def next_answer(self, path: str) -> tuple[int, Any]:
        super().next_answer(path)
        if path == "/old" or (path == "/loop" and self.paths.count(path) == 1):
            self.headers["location"] = {"/old": "/new", "/loop": "/loop"}[path]
            return 307, NO
        return 200, {}


@pytest.fixture
def redirecting() -> Iterator[Redirecting]:
    server = Redirecting()
    yield server
    server.close()


@every_library
@pytest.mark.parametrize("path", ["/old", "/loop"])
@pytest.mark.parametrize("by", ["client", "extension"])
async def test_a_redirect_that_the_client_follows_is_no_retry(
    harness: Harness, journal: HandJournal, redirecting: Redirecting, library: Any, path: str, by: str
):  # H7
    async def fetch(run: RunContext) -> int:
        if by == "client":
            return int((await bind(client, run).get(redirecting.url + path)).status_code)
        return int((await client.get(redirecting.url + path, extensions=extensions(run))).status_code)

    async with library.AsyncClient(follow_redirects=True) as client:
        wire = watch(client)
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            assert await harness.tool(run, "fetch", fetch) == 200
    assert (len(redirecting.paths), hidden(journal), wire.unattributed) == (2, [], 0)


@every_library
async def test_a_request_again_after_a_redirect_is_a_hidden_retry(
    harness: Harness, journal: HandJournal, redirecting: Redirecting, library: Any
):  # H7
    async def fetch_twice(run: RunContext) -> None:
        for _ in range(2):
            await client.get(redirecting.url + "/old", extensions=extensions(run))

    async with library.AsyncClient() as client:
        watch(client)
        with left_with(RunEnded, match="HIDDEN_RETRY"):
            async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
                await harness.tool(run, "fetch", fetch_twice)
    assert (redirecting.paths, len(hidden(journal))) == (["/old"], 1)


@every_library
async def test_a_synchronous_client_is_counted_by_a_request_extension_as_well(
    harness: Harness, journal: HandJournal, server: Answers, library: Any
):  # H7
    def fetch_twice(run: RunContext) -> None:
        client.get(server.url, extensions=extensions(run))
        bind(client, run.branch("again")).get(server.url)

    with library.Client() as client:
        watch(client, ends_run=False)
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            await harness.tool(run, "fetch", fetch_twice)
    assert [request for _, request, _ in hidden(journal)] == [2]
    assert len(server.paths) == 2


async def test_attempts_that_run_at_once_over_one_client_are_counted_apart(
    harness: Harness, journal: HandJournal, server: Answers
):  # H7, CASES 4
    server.answers = [(200, completion())]
    async with retrying_client(server, 0) as client:
        watch(client)
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            asking = [harness.model(run.branch(f"b{n}"), "ask", ask, args={"client": client}) for n in range(20)]
            await asyncio.gather(*asking)
    assert (len(server.paths), hidden(journal)) == (20, [])


@every_library
async def test_requests_of_no_attempt_are_counted_as_unattributed(server: Answers, library: Any):  # H7
    async with library.AsyncClient() as client:
        wire = watch(client)
        for _ in range(3):
            await client.get(server.url)
    assert (wire.unattributed, len(server.paths)) == (3, 3)


async def test_a_derived_client_shares_the_connections_and_leaves_them_open(
    harness: Harness, server: Answers, journal: HandJournal
):  # H7
    server.answers = [(200, {})]
    opened: list[int] = []

    async def fetch(run: RunContext) -> None:
        async with bind(client, run) as bound:
            response = await bound.get("/x", headers={"x-more": "1"})
            opened.append(response.extensions["network_stream"].get_extra_info("client_addr")[1])

    async with httpx2.AsyncClient(base_url=server.url, headers={"x-given": "1"}) as client:
        watch(client)
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            for _ in range(3):
                await harness.tool(run, "fetch", fetch)
        assert not client.is_closed
        await client.get("/y")
    assert len(set(opened)) == 1
    assert server.paths == ["/x", "/x", "/x", "/y"]


def test_watching_twice_counts_once_and_what_is_watched_is_still_looked_through():  # H7
    with httpx2.Client(mounts={"http://": httpx2.HTTPTransport()}) as client:
        assert watch(client) is watch(client)
        assert refuse_hidden_retries(client) is client
        mounted = [transport for transport in client._mounts.values() if transport is not None]  # None: no proxy there
        assert [type(transport).__name__ for transport in mounted] == ["WireTransport"]
    with httpx.Client(transport=httpx.HTTPTransport(retries=1)) as client_with_retries:
        watch(client_with_retries)
        with pytest.raises(ValueError, match=r"HTTPTransport\(retries=0\)"):
            refuse_hidden_retries(client_with_retries)


async def test_what_cannot_be_watched_or_bound_is_refused(harness: Harness):
    refused: list[Callable[[RunContext], object]] = [
        lambda run: watch(object()),
        lambda run: bind(object(), run),
        lambda run: bind(client, run),
        lambda run: extensions(run),
        lambda run: (watch(client), bind(client, run)),
    ]
    with httpx.Client() as client:
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            for call in refused:
                with pytest.raises(InvalidInput, match=r"client|run"):
                    call(run)


@pytest.mark.parametrize("times", [2, 5])
async def test_the_same_request_sent_again_after_a_redirect_is_a_hidden_one(
    harness: Harness, journal: HandJournal, server: Answers, times: int
):  # H7
    server.answers, server.headers = [(302, {})], {"location": "/elsewhere"}
    async with httpx.AsyncClient() as client:
        watch(client)

        async def insist(run: RunContext) -> None:
            bound = bind(client, run)
            request = bound.build_request("GET", server.url)
            for _ in range(times):
                await bound.send(request)

        with left_with(RunEnded, match="HIDDEN_RETRY"):
            async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
                await harness.tool(run, "get", insist)
    assert len(server.paths) == 1
    assert [request for _, request, _ in hidden(journal)] == [2]


async def test_what_is_sent_after_the_end_of_its_attempt_is_a_hidden_request(
    harness: Harness, journal: HandJournal, server: Answers
):  # E3, H7
    kept: list[httpx.AsyncClient] = []
    async with httpx.AsyncClient() as client:
        watch(client)

        async def keep(run: RunContext) -> None:
            kept.append(bind(client, run))

        with left_with(Interrupted):
            async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
                await harness.tool(run, "get", keep)
                await kept[0].get(server.url)
        with pytest.raises(Interrupted):
            await kept[0].get(server.url)
    assert server.paths == []
    assert journal.state("r").reason == "HIDDEN_RETRY"
    assert [request for _, request, _ in hidden(journal)] == [1, 2]


async def test_a_thread_whose_run_has_ended_sends_nothing(
    harness: Harness, journal: HandJournal, server: Answers
):  # H3, H7
    started, released = threading.Event(), threading.Event()
    raised: list[BaseException] = []
    with httpx.Client() as client:
        watch(client)

        def wait_then_send(run: RunContext) -> None:
            started.set()
            released.wait(timeout=30)
            try:
                bind(client, run).get(server.url)
            except BaseException as error:
                raised.append(error)
                raise

        with left_with(RunEnded, match="USER_REQUESTED"):
            async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
                asking = asyncio.ensure_future(harness.tool(run, "get", wait_then_send))
                await until(started.is_set)
                run.cancellation.signal(CancelReason.USER_REQUESTED)
        with pytest.raises(RunEnded):
            await asking
        released.set()
        await until(lambda: "attempt.finished_late" in types(journal.events("r")))
    assert [type(error) for error in raised] == [Interrupted]
    assert server.paths == []
    assert hidden(journal) == []
