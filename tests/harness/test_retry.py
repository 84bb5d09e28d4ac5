"""Retry is typed, bounded and recorded (SPEC H6)."""

import asyncio
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest

from harness import (
    AGENT_POLICY,
    EVIDENCE_REPAIR_POLICY,
    ROUTER_POLICY,
    SEMANTIC_GUARD_POLICY,
    TECHNICAL_FAILURES,
    TOOL_POLICY,
    CancelReason,
    FailureType,
    Harness,
    InvalidInput,
    LedgerUnavailable,
    ManualClock,
    OperationKind,
    RetryPolicies,
    RetryPolicy,
    RunContext,
    RunEnded,
    TokenUsage,
    TypedFailure,
)
from harness.retry import tell
from tests.harness.fakes import CountingIds, HandJournal, each, harness_over, left_with, limits, only, types

NEVER = set(FailureType) - TECHNICAL_FAILURES
ONE_ATTEMPT = [OperationKind.DIAGNOSIS_AGENT, OperationKind.TOOL_CALL, OperationKind.EVIDENCE_REPAIR]
TWO_ATTEMPTS = [OperationKind.INTENT_ROUTER, OperationKind.SEMANTIC_GUARD]


class Flaky:
    """Raises the given errors, one at each call, then returns."""

    def __init__(self, *errors: BaseException) -> None:
        self._errors = list(errors)
        self.calls = 0

    async def __call__(self, run: RunContext) -> str:
        self.calls += 1
        if self._errors:
            raise self._errors.pop(0)
        return "ok"


def transport() -> TypedFailure:
    return TypedFailure(FailureType.TRANSPORT, "reset by peer")


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def harness(journal: HandJournal, clock: ManualClock, slept: list[float]) -> Harness:
    async def sleep(delay_s: float) -> None:
        slept.append(delay_s)
        clock.advance(delay_s)

    return harness_over(journal, clock, sleep=sleep)


async def test_a_router_that_fails_once_in_transport_is_asked_again(
    harness: Harness, journal: HandJournal, slept: list[float]
):  # H6
    ask = Flaky(transport())
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        assert await harness.model(run, "route", ask, kind=OperationKind.INTENT_ROUTER) == "ok"
    events = journal.events("r")
    assert ask.calls == 2
    assert [event.attempt for event in each(events, "attempt.started")] == [1, 2]
    failed = only(events, "attempt.failed")
    assert (failed.failure, failed.will_retry) == ("TRANSPORT", True)
    scheduled = only(events, "retry.scheduled")
    assert (scheduled.attempt_id, scheduled.next_attempt) == (failed.attempt_id, 2)
    assert slept == [scheduled.delay_us / 1_000_000]
    assert types(events).count("attempt.succeeded") == 1


@pytest.mark.parametrize("kind", TWO_ATTEMPTS)
@pytest.mark.parametrize("failure", sorted(TECHNICAL_FAILURES, key=str))
async def test_router_and_guard_have_two_attempts_for_each_technical_failure(
    harness: Harness, journal: HandJournal, kind: OperationKind, failure: FailureType
):  # H6
    ask = Flaky(*(TypedFailure(failure, f"number {n}") for n in range(3)))
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(TypedFailure, match="number 1"):
            await harness.model(run, "ask", ask, kind=kind)
    assert ask.calls == 2
    assert [event.will_retry for event in each(journal.events("r"), "attempt.failed")] == [True, False]


@pytest.mark.parametrize("kind", TWO_ATTEMPTS)
@pytest.mark.parametrize("failure", sorted(NEVER, key=str))
async def test_no_other_failure_is_ever_retried(
    harness: Harness, journal: HandJournal, kind: OperationKind, failure: FailureType
):  # H6
    ask = Flaky(TypedFailure(failure, "no"))
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(TypedFailure):
            await harness.model(run, "ask", ask, kind=kind)
    assert ask.calls == 1
    assert not {"retry.scheduled", "retry.refused"} & set(types(journal.events("r")))


@pytest.mark.parametrize("kind", ONE_ATTEMPT)
async def test_agent_tool_and_repair_have_one_attempt(
    harness: Harness, journal: HandJournal, kind: OperationKind
):  # H6
    ask = Flaky(transport())
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with left_with(TypedFailure, match="reset"):
            if kind is OperationKind.TOOL_CALL:
                await harness.tool(run, "ask", ask)
            else:
                await harness.model(run, "ask", ask, kind=kind)
    assert ask.calls == 1
    began = only(journal.events("r"), "attempt.started")
    assert (began.operation, began.max_attempts) == (kind.value, 1)


@pytest.mark.parametrize("kind", OperationKind)
def test_no_policy_can_give_a_kind_more_attempts_than_it_has(kind: OperationKind):  # H6
    most = 2 if kind in TWO_ATTEMPTS else 1
    assert RetryPolicy(kind, most).max_attempts == most
    for bad in (most + 1, 0, -1, True, None, 1.0, "1"):
        with pytest.raises(InvalidInput, match=r"max_attempts"):
            RetryPolicy(kind, bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("failure", sorted(NEVER, key=str))
def test_no_policy_can_retry_what_is_never_retried(failure: FailureType):  # H6
    with pytest.raises(InvalidInput, match=failure.value):
        RetryPolicy(OperationKind.INTENT_ROUTER, 2, frozenset({failure}))


@pytest.mark.parametrize("bad", [-1.0, float("inf"), float("nan")])
def test_a_delay_is_finite_and_not_negative(bad: float):
    with pytest.raises(InvalidInput, match="base_delay_s"):
        RetryPolicy(OperationKind.INTENT_ROUTER, 2, base_delay_s=bad)


def test_a_policy_keeps_what_it_was_given():  # H6
    failures: Any = {FailureType.TRANSPORT}
    policy = RetryPolicy(OperationKind.INTENT_ROUTER, 2, failures)
    failures.add(FailureType.UNKNOWN)
    assert policy.retryable == {FailureType.TRANSPORT}


def test_the_shipped_policies_are_those_of_the_requirement():  # H6
    shipped = [ROUTER_POLICY, SEMANTIC_GUARD_POLICY, AGENT_POLICY, TOOL_POLICY, EVIDENCE_REPAIR_POLICY]
    assert [(policy.max_attempts, bool(policy.retryable)) for policy in shipped] == [
        (2, True),
        (2, True),
        (1, False),
        (1, False),
        (1, False),
    ]
    assert RetryPolicies().by_kind == {policy.kind: policy for policy in shipped}


def test_a_policy_stands_under_its_own_kind():
    with pytest.raises(InvalidInput, match="is a policy for INTENT_ROUTER"):
        RetryPolicies({OperationKind.TOOL_CALL: ROUTER_POLICY})


SUMMARY = RetryPolicy("SUMMARY", 3, TECHNICAL_FAILURES, base_delay_s=1.0, max_delay_s=1.5)


async def test_another_kind_has_the_policy_that_the_run_gives_it(harness: Harness, journal: HandJournal):  # H6
    policies = RetryPolicies().plus(SUMMARY)
    ask = Flaky(transport(), transport())
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60, policies=policies) as run:
        assert await harness.model(run, "sum", ask, kind="SUMMARY") == "ok"
    started = each(journal.events("r"), "attempt.started")
    assert [(event.operation, event.max_attempts, event.attempt) for event in started] == [
        ("SUMMARY", 3, 1),
        ("SUMMARY", 3, 2),
        ("SUMMARY", 3, 3),
    ]


async def test_another_kind_without_an_explicit_policy_is_refused(harness: Harness, journal: HandJournal):  # H6
    no_code: Any = 3
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(InvalidInput, match="SUMMARY has no retry policy"):
            await harness.model(run, "sum", Flaky(), kind="SUMMARY")
        with pytest.raises(InvalidInput, match="kind"):
            await harness.guard(run, "sum", Flaky(), kind=no_code)
    assert each(journal.events("r"), "attempt.started") == []


@pytest.mark.parametrize("kind", OperationKind)
def test_a_kind_by_its_plain_name_is_held_to_the_same_ceiling(kind: OperationKind):  # H6
    most = 2 if kind in TWO_ATTEMPTS else 1
    with pytest.raises(InvalidInput, match="max_attempts"):
        RetryPolicy(kind.value, most + 1)
    policy = RetryPolicy(kind.value, 1)
    assert RetryPolicies().plus(policy).of(kind) is policy
    assert len(RetryPolicies().plus(policy).by_kind) == len(OperationKind)


@pytest.mark.parametrize("bad", ["", "two words", "é", 7, None, "x" * 65])
def test_a_kind_is_a_code(bad: Any):
    with pytest.raises(InvalidInput, match="kind"):
        RetryPolicy(bad, 1)


def test_another_kind_is_part_of_the_digest_and_takes_nothing_from_it():  # E11
    text = '{"SUMMARY":{"base_delay_us":1000000,"max_attempts":3,"max_delay_us":1500000,"retryable":["MALFORMED_REPLY",'
    text += '"PROVIDER_ERROR","RATE_LIMITED","TIMEOUT","TRANSPORT"]}}'
    assert RetryPolicies({"SUMMARY": SUMMARY}).digest() == sha256(b"tachograph/policy/v1\0" + text.encode()).hexdigest()
    by_name = RetryPolicies({kind.value: policy for kind, policy in RetryPolicies().by_kind.items()})
    assert by_name.digest() == RetryPolicies().digest()


async def test_a_policy_of_one_attempt_means_one(harness: Harness):  # CASES 16
    policies = RetryPolicies(
        {OperationKind.INTENT_ROUTER: RetryPolicy(OperationKind.INTENT_ROUTER, 1, TECHNICAL_FAILURES)}
    )
    ask = Flaky(transport())
    async with harness.run(session_id="s", limits=limits(), timeout_s=60, policies=policies) as run:
        with pytest.raises(TypedFailure):
            await harness.model(run, "route", ask, kind=OperationKind.INTENT_ROUTER)
    assert ask.calls == 1


async def test_each_attempt_is_charged(harness: Harness, journal: HandJournal):  # H4, H6
    ask = Flaky(transport())
    async with harness.run(session_id="s", run_id="r", limits=limits(model_calls=2), timeout_s=60) as run:
        await harness.model(run, "route", ask, kind=OperationKind.INTENT_ROUTER)
    assert journal.state("r").usage["model_calls"] == 2


async def test_a_second_attempt_that_no_limit_allows_is_refused(harness: Harness, journal: HandJournal):  # H4, H6
    ask = Flaky(transport())
    with pytest.raises(RunEnded, match="model_calls 1 of 1"):
        async with harness.run(session_id="s", run_id="r", limits=limits(model_calls=1), timeout_s=60) as run:
            await harness.model(run, "route", ask, kind=OperationKind.INTENT_ROUTER)
    assert ask.calls == 1


async def test_a_back_off_that_would_outlive_the_deadline_is_refused_now(
    harness: Harness, journal: HandJournal, slept: list[float]
):  # CASES 15
    late = TypedFailure(FailureType.RATE_LIMITED, "slow down", retry_after_s=7)
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=5) as run:
        with pytest.raises(TypedFailure, match="slow down"):
            await harness.model(run, "route", Flaky(late), kind=OperationKind.INTENT_ROUTER)
    refused = only(journal.events("r"), "retry.refused")
    assert (refused.failure, refused.reason, slept) == ("RATE_LIMITED", "DEADLINE_EXCEEDED", [])
    assert only(journal.events("r"), "attempt.failed").will_retry is False


async def test_a_server_that_names_a_delay_is_given_it(harness: Harness, slept: list[float]):  # CASES 15
    later = TypedFailure(FailureType.RATE_LIMITED, "slow down", retry_after_s=3)
    async with harness.run(session_id="s", limits=limits(), timeout_s=5) as run:
        assert await harness.model(run, "route", Flaky(later), kind=OperationKind.INTENT_ROUTER) == "ok"
    assert slept == [3]


@pytest.mark.parametrize("fraction", [0.0, 0.5, 1 - 2**-53])
@pytest.mark.parametrize("attempt", range(1, 11))
def test_jitter_never_passes_the_maximum(fraction: float, attempt: int):  # CASES 15
    policy = RetryPolicy(OperationKind.INTENT_ROUTER, 2, base_delay_s=0.1, max_delay_s=2.0)
    full_s = min(2.0, 0.1 * 2 ** (attempt - 1))
    assert full_s / 2 <= policy.delay_s(attempt, fraction) <= full_s


async def test_the_delay_comes_from_the_injected_fraction(journal: HandJournal, clock: ManualClock):
    slept = []

    async def sleep(delay_s: float) -> None:
        slept.append(delay_s)

    harness = harness_over(journal, clock, sleep=sleep, ids=CountingIds(fraction=0.5))
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        await harness.model(run, "route", Flaky(transport()), kind=OperationKind.INTENT_ROUTER)
    assert slept == [pytest.approx(0.075)]


async def test_a_run_that_ended_during_the_attempt_is_the_reason_for_no_other(harness: Harness, journal: HandJournal):
    # H6: cancelled between attempts
    async def ask(run: RunContext) -> None:
        run.cancellation.signal(CancelReason.USER_REQUESTED)
        raise transport()

    with pytest.raises(TypedFailure):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            await harness.model(run, "route", ask, kind=OperationKind.INTENT_ROUTER)
    assert only(journal.events("r"), "retry.refused").reason == "USER_REQUESTED"
    assert types(journal.events("r")).count("attempt.started") == 1


class NotFound(Exception):
    """Falsy, as some responses are."""

    def __bool__(self) -> bool:
        return False


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (TypedFailure(FailureType.NO_EVIDENCE, "none"), FailureType.NO_EVIDENCE),
        (TimeoutError(), FailureType.TIMEOUT),
        (ConnectionResetError(), FailureType.TRANSPORT),
        (BrokenPipeError(), FailureType.TRANSPORT),
        (RunEnded("s", "r", outcome="FAILED", reason="X"), FailureType.RUN_ENDED),
        (LedgerUnavailable("gone"), FailureType.RUN_ENDED),
        (InvalidInput("n", "is odd"), FailureType.INVALID_ARGUMENTS),
        (asyncio.CancelledError(), FailureType.CANCELLED),
        (NotFound(), FailureType.NOT_FOUND),
        (OSError("disk"), FailureType.UNKNOWN),
        (ValueError("reset by peer: TRANSPORT"), FailureType.UNKNOWN),
    ],
    ids=repr,
)
def test_a_failure_is_told_by_type_and_never_by_its_text_or_truth(
    error: BaseException, failure: FailureType
):  # CASES 14
    def of_the_shop(error: BaseException) -> FailureType | None:
        return FailureType.NOT_FOUND if isinstance(error, NotFound) else None

    assert tell(error, [of_the_shop]).failure is failure


async def test_a_classifier_that_raises_or_returns_nonsense_knows_nothing(
    journal: HandJournal, clock: ManualClock, caplog: pytest.LogCaptureFixture
):
    def broken(error: BaseException) -> FailureType:
        raise AttributeError("secret-17")

    def nonsense(error: BaseException) -> Any:
        return "TRANSPORT"

    harness = harness_over(journal, clock, classifiers=(broken, nonsense))
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        with pytest.raises(KeyError):
            await harness.tool(run, "flaky", Flaky(KeyError("busy")))
    assert only(journal.events("r"), "attempt.failed").failure == "UNKNOWN"
    assert "a classifier raised AttributeError over KeyError" in caplog.text
    assert "secret-17" not in caplog.text


async def test_a_sleep_that_fails_is_not_swallowed(journal: HandJournal):
    async def sleep(_: float) -> None:
        raise OSError("no clock")

    harness = harness_over(journal, sleep=sleep)
    with left_with(OSError, match="no clock"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            await harness.model(run, "route", Flaky(transport()), kind=OperationKind.INTENT_ROUTER)
    assert journal.state("r").outcome == "FAILED"


async def test_the_harness_asks_the_classifiers_it_was_given(journal: HandJournal, clock: ManualClock):  # H6
    def busy(error: BaseException) -> FailureType | None:
        return FailureType.PROVIDER_ERROR if isinstance(error, KeyError) else None

    harness = harness_over(journal, clock, classifiers=(busy,), sleep=lambda _: asyncio.sleep(0))
    ask = Flaky(KeyError("busy"))
    async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
        assert await harness.model(run, "route", ask, kind=OperationKind.INTENT_ROUTER) == "ok"
    assert only(journal.events("r"), "attempt.failed").failure == "PROVIDER_ERROR"


@pytest.mark.parametrize(
    "make",
    [
        lambda: TypedFailure("TRANSPORT", "x"),  # type: ignore[arg-type]
        lambda: TypedFailure(FailureType.TRANSPORT, "x", retry_after_s="7"),  # type: ignore[arg-type]
        lambda: TypedFailure(FailureType.TRANSPORT, "x", retry_after_s=True),
        lambda: TypedFailure(FailureType.TRANSPORT, "x", usage={"input_tokens": 1}),  # type: ignore[arg-type]
    ],
)
def test_a_typed_failure_that_could_not_be_recorded_is_refused_where_it_is_made(make: Callable[[], Any]):
    with pytest.raises(InvalidInput):
        make()


def test_policies_have_one_digest_that_another_language_can_make():  # E11, D21
    text = (
        '{"DIAGNOSIS_AGENT":{"base_delay_us":100000,"max_attempts":1,"max_delay_us":2000000,"retryable":[]},'
        '"INTENT_ROUTER":{"base_delay_us":1000000,"max_attempts":2,"max_delay_us":2000000,"retryable":["TIMEOUT"]}}'
    )
    for delay_s in (1, 1.0):
        router = RetryPolicy(OperationKind.INTENT_ROUTER, 2, frozenset({FailureType.TIMEOUT}), base_delay_s=delay_s)
        policies = RetryPolicies({OperationKind.INTENT_ROUTER: router, OperationKind.DIAGNOSIS_AGENT: AGENT_POLICY})
        assert policies.digest() == sha256(b"tachograph/policy/v1\0" + text.encode()).hexdigest()
    assert RetryPolicies().digest() == "d29e7780a7ceeebfad39a98b0eeb878211c7b1216f2802b5d28295a89f465fde"


@pytest.mark.parametrize("delay_s", [-1.0, 1e308, float("inf"), float("nan"), 86_401.0])
def test_a_delay_out_of_range_is_refused_where_it_is_given(delay_s: float):  # H6
    with pytest.raises(InvalidInput, match="max_delay_s"):
        RetryPolicy(OperationKind.INTENT_ROUTER, 2, TECHNICAL_FAILURES, max_delay_s=delay_s)


@pytest.mark.parametrize("kind", [RetryPolicy, RetryPolicies, TokenUsage])
def test_no_subclass_loosens_a_policy_or_reports_other_tokens(kind: type):  # H4a, H6
    with pytest.raises(TypeError, match="there is no subclass"):
        type("Loose", (kind,), {"permits": lambda *_: True})


async def test_a_delay_beyond_every_number_is_past_the_deadline(journal, clock, slept):  # CASES 15
    late = TypedFailure(FailureType.RATE_LIMITED, "wait", retry_after_s=10**400)
    harness = harness_over(journal, clock)
    with left_with(TypedFailure, match="wait"):
        async with harness.run(session_id="s", run_id="r", limits=limits(), timeout_s=60) as run:
            await harness.model(run, "router", Flaky(late), kind=OperationKind.INTENT_ROUTER)
    assert only(journal.events("r"), "retry.refused").reason == "DEADLINE_EXCEEDED"
