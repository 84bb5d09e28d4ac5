"""Whatever is done with a run, in whatever order, it is where a simple model says (SPEC H2-H5, H9, D4, D5, D13)."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harness import (
    CancelReason,
    Capture,
    CapturePolicy,
    FailureType,
    HarnessError,
    Limits,
    ManualClock,
    Outcome,
    Price,
    PriceTable,
    RunContext,
    RunEnded,
    ScopeLimits,
    TokenUsage,
    TypedFailure,
    evolve,
)
from tests.examples import examples
from tests.harness.fakes import HandJournal, Reply, each, harness_over, until
from tests.property.harness_model import IN_MICROS, OUT_MICROS, Account, Attempt, Model, Tokens, priced

PRICES = PriceTable(
    "v1",
    "USD",
    {"m": Price(input_micros_per_million=IN_MICROS * 10**6, output_micros_per_million=OUT_MICROS * 10**6)},
)
NOTHING_KEPT = CapturePolicy(**dict.fromkeys(CapturePolicy.__dataclass_fields__, Capture.DIGEST_ONLY))
"""So that only what is reserved by hand is charged in bytes."""
RUN_TIMEOUT_S = 60
TURNS = 25
"""Of the loop, within which everything has come to rest that nothing holds up."""

maybe = st.none() | st.integers(0, 30)
usages = st.tuples(maybe, maybe)
estimates = st.none() | usages.filter(lambda usage: usage != (None, None))
indices = st.integers(0, 7)
REQUIRED = ("model_calls", "tool_calls", "input_tokens", "output_tokens", "total_tokens", "run_bytes")


@st.composite
def limits_of(draw: Any, kind: type[ScopeLimits], *, calls: int, tokens: int) -> ScopeLimits:
    """Limits that some step soon reaches, unless it is one of the many that are only observed."""
    few, many = st.integers(1, calls), st.integers(1, tokens)
    figures = {name: few if name.endswith("_calls") else many for name in REQUIRED}
    tools: dict[str, st.SearchStrategy[Any]] = {
        "per_tool": st.dictionaries(st.just("grep"), few),
        "per_tool_default": few,
    }
    more = {"cost_micros": many, "repeated_calls": st.integers(1, 2)}
    is_of_run = kind is Limits
    optional = more if is_of_run else figures | tools | more
    given = draw(st.fixed_dictionaries(figures | tools if is_of_run else {}, optional=optional))
    resources = sorted(kind(**given).as_map())
    observe = draw(st.sets(st.sampled_from(resources))) if resources else set()
    return kind(**given, observe=observe)


scope_limits = limits_of(ScopeLimits, calls=4, tokens=60)
Start = tuple[int, bool, str | None, int, Tokens | None]
"""Where, whether on a thread, which tool, if it is one, with which argument, and a model's estimate."""
starts = st.tuples(indices, st.booleans(), st.sampled_from(["grep", "cat", None, None]), st.integers(0, 1), estimates)


def split(limits: ScopeLimits) -> tuple[dict[str, int], dict[str, int]]:
    flat = limits.as_map()
    observed = {name.removeprefix("observe:"): limit for name, limit in flat.items() if name.startswith("observe:")}
    return {name: limit for name, limit in flat.items() if not name.startswith("observe:")}, observed


@dataclass
class Work:
    """An operation that ends when, and as, it is told to."""

    attempt: Attempt
    orders: queue.SimpleQueue[Callable[[], Reply]] = field(default_factory=queue.SimpleQueue)
    has_order: asyncio.Event = field(default_factory=asyncio.Event)
    attempt_id: str | None = None
    task: asyncio.Task[Any] | None = None

    async def coroutine(self, run: RunContext, **args: int) -> Reply:
        self.attempt_id = run.attempt_id
        await self.has_order.wait()
        return self.orders.get(timeout=30)()

    def function(self, run: RunContext, **args: int) -> Reply:
        self.attempt_id = run.attempt_id
        return self.orders.get(timeout=30)()

    def end(self, usage: Tokens, fails: bool) -> None:
        def order() -> Reply:
            if fails:
                raise TypedFailure(FailureType.MALFORMED_REPLY, "no JSON", usage=TokenUsage(*usage))
            return Reply(TokenUsage(*usage))

        self.orders.put(order)
        self.has_order.set()


class RunMachine(RuleBasedStateMachine):
    @initialize(
        limits=limits_of(Limits, calls=20, tokens=300),
        inner=st.lists(scope_limits, max_size=3),
        work=st.lists(starts, min_size=4, max_size=9),
    )
    def begin(self, limits: Limits, inner: list[ScopeLimits], work: list[Start]) -> None:
        """Each run begins with some of both, since Hypothesis leaves out whole rules for many of its examples."""
        self.loop = asyncio.new_event_loop()
        self.clock, self.journal = ManualClock(), HandJournal()
        self.harness = harness_over(self.journal, self.clock, prices=PRICES, capture=NOTHING_KEPT)
        self.model = Model(*split(limits), RUN_TIMEOUT_S)
        self.block = self.harness.run(session_id="s", run_id="r", limits=limits, timeout_s=RUN_TIMEOUT_S)
        self.contexts = [self.do(self.block.__aenter__())]
        self.scopes: list[Any] = [None]
        self.works: list[Work] = []
        for index, each_limits in enumerate(inner):
            self.open_scope(index=index, limits=each_limits, timeout_s=20)
        for start in work:
            self.start(start=start)

    @rule(index=indices, limits=scope_limits, timeout_s=st.integers(1, 30))
    def open_scope(self, index: int, limits: ScopeLimits, timeout_s: int) -> None:
        account, context = self.at(index)
        expected = self.model.open_scope(account, *split(limits), timeout_s)
        scope = self.harness.scope(context, "scope", limits=limits, timeout_s=timeout_s)
        inside = self.refused(expected, scope.__enter__)
        if expected == "":
            self.contexts.append(inside)
            self.scopes.append(scope)

    @precondition(lambda self: len(self.contexts) > 1)
    @rule(index=indices)
    def leave_scope(self, index: int) -> None:
        account, _ = self.at(index)
        if account is not self.model.run:
            self.model.leave_scope(account)
            self.call(lambda: self.scopes[self.model.accounts.index(account)].__exit__(None, None, None))

    @rule(start=starts)
    def start(self, start: Start) -> None:
        index, on_thread, tool, argument, estimate = start
        account, context = self.at(index)
        work = Work(Attempt(len(self.works), account, tool is None, on_thread))
        fn: Any = work.function if on_thread else work.coroutine
        branch = context.branch(f"b{len(self.works)}")
        if tool is None:
            asked, call = {"model_calls": 1, **priced(estimate or (None, None))}, None
            reserve = None if estimate is None else TokenUsage(*estimate)
            crossing = self.harness.model(branch, "ask", fn, model="m", reserve=reserve)
        else:
            asked, call = {"tool_calls": 1, f"tool:{tool}": 1}, (tool, argument)
            crossing = self.harness.tool(branch, tool, fn, args={"n": argument})
        told = self.model.told(account, asked, call)
        before = len(self.journal.events("r"))
        expected = self.model.start(account, asked, call, work.attempt)

        async def crosses() -> None:
            task = work.task = asyncio.ensure_future(_error_of(crossing))
            await until(lambda: work.attempt_id is not None or task.done())
            if expected:
                assert type(await task).__name__ == expected

        self.do(crosses())
        assert (work.attempt_id is None) is (expected != "")
        if expected == "":
            self.works.append(work)
            new = self.journal.events("r")[before:]
            assert {(event.scope_id, event.resource) for event in each(new, "limit.would_reject")} == told

    @precondition(lambda self: self.in_flight())
    @rule(index=indices, usage=usages, fails=st.booleans())
    def end(self, index: int, usage: Tokens, fails: bool) -> None:
        """In time or, where nobody waits for it any more, late."""
        work = self.in_flight()[index % len(self.in_flight())]
        is_late = work.attempt.state == "abandoned"
        self.model.end(work.attempt, usage)
        work.end(usage, fails)

        async def ending() -> None:
            if is_late:
                late = "attempt.finished_late"
                await until(lambda: work.attempt_id in {event.attempt_id for event in each(self.events(), late)})
            elif work.task is not None:
                await asyncio.wait({work.task}, timeout=30)

        self.do(ending())

    @precondition(lambda self: any(work.attempt.state == "open" for work in self.works))
    @rule(index=indices)
    def cancel(self, index: int) -> None:
        waiting = [work for work in self.works if work.attempt.state == "open"]
        work = waiting[index % len(waiting)]
        self.model.let_go(work.attempt)
        assert work.task is not None
        self.call(work.task.cancel)

    @rule(index=indices, size=st.integers(1, 30), ends=st.booleans())
    def reserve_bytes(self, index: int, size: int, ends: bool) -> None:
        account, context = self.at(index)
        told = self.model.told(account, {"run_bytes": size})
        before = len(self.events())
        expected = self.model.reserve(account, size, ends=ends)
        self.refused(
            expected,
            lambda: self.harness.reserve_bytes(context, size) if ends else context.capacity.reserve(size),
        )
        new = {(event.scope_id, event.resource) for event in each(self.events()[before:], "limit.would_reject")}
        assert new == (told if expected == "" else set())

    @rule(index=indices)
    def transition(self, index: int) -> None:
        account, context = self.at(index)
        self.refused(self.model.check(account), lambda: self.harness.transition(context, None, "planner"))

    @rule(seconds=st.integers(1, 6))
    def wait(self, seconds: int) -> None:
        self.model.now_s += seconds
        self.clock.advance(seconds)

    @precondition(lambda self: len(self.works) > 5)
    @rule(index=indices)
    def signal(self, index: int) -> None:
        _, context = self.at(index)
        is_first = self.model.outcome is None
        self.model.stop("CANCELLED")
        assert self.call(lambda: context.cancellation.signal(CancelReason.USER_REQUESTED)) is is_first

    @precondition(lambda self: len(self.works) > 5)
    @rule(index=indices, outcome=st.sampled_from([Outcome.SUCCESS, Outcome.FAILED]))
    def finish(self, index: int, outcome: Outcome) -> None:
        _, context = self.at(index)
        expected = self.model.finish(outcome.value)
        assert self.call(lambda: context.lifecycle.finish(outcome, "DONE")) is expected

    @invariant()
    def every_account_is_where_the_model_says(self) -> None:
        for account, context in zip(self.model.accounts, self.contexts, strict=True):
            snapshot = context.budget.snapshot()
            assert _nonzero(snapshot.usage) == _nonzero(account.used())
            assert (snapshot.limits, snapshot.observed) == (account.enforced, account.observed)
            assert (snapshot.usage_unknown_count, snapshot.cost_unknown_count) == (
                account.usage_unknown,
                account.cost_unknown,
            )
            per_tool = sum(used for name, used in snapshot.usage.items() if name.startswith("tool:"))
            assert per_tool == snapshot.usage.get("tool_calls", 0)

    @invariant()
    def the_run_has_ended_as_the_model_says(self) -> None:
        end = self.contexts[0].lifecycle.termination
        assert (None if end is None else end.outcome.value) == self.model.outcome
        state = self.contexts[0].live.state
        open_ids = {work.attempt_id for work in self.works if work.attempt.state == "open"}
        assert {*state.open_attempts} == open_ids

    def teardown(self) -> None:
        if not hasattr(self, "model"):
            return
        self.model.finish("SUCCESS")
        self.model.let_go_all()
        left = self.do(_error_of(self.block.__aexit__(None, None, None)))
        assert (left is None) is (self.model.outcome == "SUCCESS")
        assert left is None or (isinstance(left, RunEnded) and left.outcome == self.model.outcome)
        for index in range(len(self.in_flight())):
            self.end(index=0, usage=(index, index), fails=False)
        self.every_account_is_where_the_model_says()
        self.loop.close()
        self.the_record_adds_up_to_the_same()

    def the_record_adds_up_to_the_same(self) -> None:
        state = None
        for event in self.events():
            state = evolve(state, event)
        assert state == self.contexts[0].live.state == self.journal.state("r")
        assert state is not None
        assert state.outcome == self.model.outcome
        assert (state.reserved, state.open_attempts, state.abandoned_attempts) == ({}, {}, {})
        assert self.journal.permits_open == 0

    def in_flight(self) -> list[Work]:
        return [work for work in self.works if work.attempt.state != "over"]

    def events(self) -> list[Any]:
        return self.journal.events("r")

    def at(self, index: int) -> tuple[Account, RunContext]:
        place = index % len(self.contexts)
        return self.model.accounts[place], self.contexts[place]

    def refused(self, expected: str, action: Callable[[], Any]) -> Any:
        """Do what is refused with `expected`, or is not where that is empty."""
        done: list[Any] = []

        async def doing() -> None:
            done.append(action())

        error = self.do(_error_of(doing()))
        assert ("" if error is None else type(error).__name__) == expected
        return None if error is not None else done[0]

    def call(self, action: Callable[[], Any]) -> Any:
        async def acting() -> Any:
            return action()

        return self.do(acting())

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """In the loop, until everything has come to rest."""

        async def doing() -> Any:
            try:
                return await work
            finally:
                for _ in range(TURNS):
                    await asyncio.sleep(0)

        return self.loop.run_until_complete(doing())


async def _error_of(awaitable: Any) -> BaseException | None:
    try:
        await awaitable
    except (HarnessError, asyncio.CancelledError) as error:
        return error
    return None


def _nonzero(usage: Any) -> dict[str, int]:
    return {name: used for name, used in usage.items() if used}


TestRunMachine = RunMachine.TestCase
TestRunMachine.settings = settings(examples(40), stateful_step_count=25)
