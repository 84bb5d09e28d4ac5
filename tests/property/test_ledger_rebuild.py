"""For any legal run, the rows written while it happened are the rows that its events give afterwards (SPEC E1)."""

import asyncio
import random
import sqlite3
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from harness import events as e
from harness.errors import HarnessError
from ledger import Ledger
from tests.examples import examples
from tests.ledger.blank import blank_at
from tests.ledger.scripted import ScriptedRun
from tests.ledger.tables import dump

ACTIONS = (
    "start model",
    "start tool",
    "start guard",
    "succeed",
    "fail",
    "fail and retry",
    "abandon",
    "finish late",
    "transition",
    "finish graph",
    "reject",
    "request cancellation",
    "signal",
    "select flow",
    "answer",
    "evaluate",
    "useful",
    "not useful",
    "end",
    "open scope",
    "exhaust scope",
    "close scope",
    "decide",
    "pass observed",
    "retry unseen",
)
WITHOUT_END = tuple(action for action in ACTIONS if action not in ("end", "finish graph", "exhaust scope", "answer"))
RESERVE = {"input_tokens": 20, "output_tokens": 9, "total_tokens": 29, "cost_micros": 70}
STREAM = {"first_output_us": 5, "output_chunks": 2}


class RandomRun:
    """Carries out actions as far as they make sense; the fold refuses the rest."""

    def __init__(self, number: int) -> None:
        self.run = ScriptedRun(f"run-{number}", f"session-{number % 2}")
        self.open: list = []
        self.abandoned: list = []
        self.ended: list = []
        self.scopes: list[str] = []
        self.scopes_opened = 0

    def submissions(self, action: str, pick: int, tokens: int | None):
        yield from self.of_attempts(action, pick, tokens)
        yield from self.of_scopes(action, pick)
        yield from self.of_the_path(action, pick)
        yield from self.of_the_whole(action, pick)

    def scope(self, pick: int) -> str | None:
        return self.scopes[pick % len(self.scopes)] if self.scopes and pick % 5 else None

    def of_attempts(self, action: str, pick: int, tokens: int | None):
        run = self.run
        usage = None if tokens is None else {"input_tokens": tokens, "output_tokens": tokens // 2}
        if usage is not None and pick % 3:
            usage["cost_micros"] = usage["input_tokens"] * pick
        match action:
            case "start model" | "start tool" | "start guard":
                timeout_us = 500 if pick % 4 == 1 else None
                scope = self.scope(pick)
                attempt = run.attempt(action.split()[1], f"n{pick % 3}", scope_id=scope, timeout_us=timeout_us)
                self.open.append(attempt)
                yield attempt.start(f"input {pick % 2}", reserve=RESERVE if pick % 2 else None)
            case "succeed" | "fail" | "fail and retry" | "abandon" if self.open:
                yield from self.end_of_attempt(action, pick, usage)
            case "finish late" if self.abandoned:
                yield self.abandoned.pop(pick % len(self.abandoned)).finish_late(usage)
            case "retry unseen" if self.open or self.ended:
                known = [*self.open, *self.ended]
                charged = {"model_calls": 1, **({"input_tokens": tokens} if tokens else {})}
                yield known[pick % len(known)].retry_unseen(2 + pick % 2, charged if pick % 3 else None)
            case "pass observed" if self.open:
                yield self.open[pick % len(self.open)].pass_observed(f"r{pick % 2}", pick)

    def end_of_attempt(self, action: str, pick: int, usage: dict[str, int] | None):
        attempt = self.open.pop(pick % len(self.open))
        stream = STREAM if pick % 3 == 2 else {}
        self.ended.append(attempt)
        if action == "abandon":
            self.abandoned.append(attempt)
            yield attempt.abandon("NOT_INVOKED" if pick % 4 == 3 else "RUN_ENDED")
        elif action == "succeed":
            yield attempt.succeed(f"output {pick}", usage, **stream)
        else:
            yield attempt.fail(will_retry=action == "fail and retry", usage=usage, **stream)
        if action == "fail and retry" and pick % 2:
            again = self.run.attempt(attempt.kind, attempt.name, attempt=attempt.number + 1)
            again.boundary = attempt.boundary.rpartition("/")[0] + f"/{again.number}"
            self.open.append(again)
            yield again.start()

    def of_scopes(self, action: str, pick: int):
        run = self.run
        match action:
            case "open scope":
                self.scopes_opened += 1
                outer, limits = self.scope(pick), {"model_calls": pick, "observe:tool_calls": 1}
                yield run.open_scope(f"s{self.scopes_opened}", outer, **limits)
                self.scopes.append(f"s{self.scopes_opened}")
            case "exhaust scope" if self.scopes:
                yield run.exhaust_scope(self.scopes[pick % len(self.scopes)])
            case "close scope" if self.scopes:
                yield run.close_scope(self.scopes.pop(pick % len(self.scopes) if pick % 3 == 0 else -1))

    def of_the_path(self, action: str, pick: int):
        run = self.run
        match action:
            case "decide":
                yield run.decide(f"n{pick % 3}", allowed=bool(pick % 2))
            case "transition":
                yield run.transition(f"n{pick % 4}", cause=("NEXT", "REPAIR", "FALLBACK")[pick % 3])
            case "finish graph":
                yield run.finish_graph(degraded=bool(pick % 2))
            case "reject":
                figures = {"resource": f"r{pick % 2}", "amount": 1, "used": pick, "limit": pick}
                yield run.submission(
                    run.event(e.ReservationRejected, boundary="tool/x/1/1", kind="tool", name="x", **figures)
                )
            case "select flow":
                yield run.submission(run.event(e.FlowSelected, boundary="f/run/1/1", flow=f"F{pick % 2}"))

    def of_the_whole(self, action: str, pick: int):
        run = self.run
        match action:
            case "request cancellation":
                yield run.request_cancellation()
            case "signal":
                yield run.submission(run.event(e.CancellationSignalled, boundary="c/run/1/1", reason="SHUTDOWN"))
            case "answer":
                yield run.answer(f"answer {pick}")
            case "evaluate":
                yield run.submission(run.event(e.EvaluationRecorded, evaluator=f"e{pick % 2}", verdict=f"V{pick}"))
            case "useful" | "not useful":
                said = [run.event(e.FeedbackRecorded, useful=action == "useful")]
                if action == "useful":
                    said.append(run.event(e.CaseRecorded, case_id=f"case-{run.run_id}", verdict="V"))
                yield run.submission(*said)
            case "end":
                for attempt in self.open:
                    yield attempt.abandon()
                self.abandoned += self.open
                self.ended += self.open
                self.open.clear()
                yield run.end(
                    *(("SUCCESS", "COMPLETED"), ("FAILED", "X"), ("TIMED_OUT", "DEADLINE_EXCEEDED"))[pick % 3]
                )


steps = st.tuples(
    st.integers(0, 2), st.sampled_from(ACTIONS), st.integers(0, 11), st.one_of(st.none(), st.integers(0, 9))
)


async def record(path: Path, script) -> int:
    """Append what the script says, over two openings of the ledger; how many appends were taken."""
    runs = [RandomRun(number) for number in range(3)]
    taken = 0
    begun: set[int] = set()
    for half in (script[: len(script) // 2], script[len(script) // 2 :]):
        # A ledger of its own for each half: the second begins with nothing remembered, and recovers what it finds.
        async with await Ledger.open(path) as ledger:
            futures = []
            for number, action, pick, tokens in half:
                if number not in begun:
                    begun.add(number)
                    futures.append(ledger.journal.submit(runs[number].run.start()))
                futures += [ledger.journal.submit(one) for one in runs[number].submissions(action, pick, tokens)]
            for future in futures:
                error = future.exception()
                assert error is None or isinstance(error, HarnessError), error
                taken += error is None
            assert (await ledger.rebuild()).is_clean
    return taken


@examples(35)
@given(st.lists(steps, min_size=1, max_size=60))
def test_live_rows_and_rebuilt_rows_are_the_same_byte_for_byte(script):  # CASES 39
    with tempfile.TemporaryDirectory() as folder:
        path = blank_at(Path(folder) / "runs.db")
        assert asyncio.run(record(path, script)) >= 1
        live, rebuilt = asyncio.run(lose_and_rebuild(path))
        assert rebuilt == live


async def lose_and_rebuild(path: Path):
    """Every projection before and after all their rows were lost."""
    connection = sqlite3.connect(path, isolation_level=None)
    async with await Ledger.open(path) as ledger:
        live = dump(connection)
        for table in live:
            connection.execute(f"DELETE FROM {table}")
        await ledger.rebuild()
        rebuilt = dump(connection)
    connection.close()
    return live, rebuilt


def test_a_long_run_is_rebuilt_over_many_pages():
    order = random.Random(7)
    script = [(0, order.choice(WITHOUT_END), order.randrange(12), 3) for _ in range(1_500)]
    with tempfile.TemporaryDirectory() as folder:
        path = blank_at(Path(folder) / "runs.db")
        assert asyncio.run(record(path, script)) > 500
