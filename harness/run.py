"""The harness: opens runs, lets their work through, and records what they say of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from harness.block.opening import open_run
from harness.block.run import RunBlock
from harness.budget.limits import Limits
from harness.calls import Calls
from harness.deadline import Deadline
from harness.engine import Engine
from harness.journal import Journal
from harness.options import Settings
from harness.retry import RetryPolicies
from harness.statements import Statements


class Harness(Calls, Statements):
    """Holds runs to their limits and records every boundary they cross.

    One harness serves any number of runs, and keeps nothing of them. `model`, `tool` and `guard` are plain functions
    that return an awaitable: the call gives the boundary its ordinal, awaiting it does the work (SPEC D7).
    """

    def __init__(self, journal: Journal, **settings: Unpack[Settings]) -> None:
        """`settings` are given by keyword; `InvalidInput` names the one that is wrong.

        `prices`, a `PriceTable`, reckon what model steps cost. `policies` are asked before each tool call, `observers`
        are told of each attempt; one may take `hook_timeout_s` (5). `classifiers` tell the failures of a client by
        type, for retry. `capture` says which content is kept. Asynchronous work may take `drain_timeout_s` (5) to stop
        once its run has ended, the end of a run `close_timeout_s` (10) to become durable, and a boundary waits
        `permit_timeout_s` (10) for room in the journal; all in seconds. `monotonic_clock`, `wall_clock`, `ids`,
        `sleep` and `threads` are for tests: `ManualClock`.
        """
        super().__init__(Engine(journal, **settings))

    def run(
        self,
        *,
        session_id: str,
        limits: Limits,
        timeout_s: float,
        deadline: Deadline | None = None,
        query: str | bytes | None = None,
        run_id: str | None = None,
        policies: RetryPolicies | None = None,
        agent: str | None = None,
        flow: str | None = None,
        actor: str | None = None,
        environment: str | None = None,
        labels: Mapping[str, str] | None = None,
        parent_run_id: str | None = None,
        continues_run_id: str | None = None,
        traceparent: str | None = None,
    ) -> RunBlock:
        """A run to enter with `async with`; `InvalidInput` names the value that is wrong.

        It has `timeout_s` seconds from when it is entered, but no longer than until `deadline`, such as that of the
        run that it works for, here or in another process (`Deadline.from_header`). The block is left normally for
        SUCCESS only: else with `RunEnded`, with what was raised in it, or with `TerminationNotRecorded`.

        `run_id` is made up unless given, and never used twice. `query` is what was asked; its bytes count. `policies`
        are those of retry; those of tools are the harness's. `agent` is `name` or `name@version`, `flow` a code; they
        and all that follows are labels for whoever reads the record.
        """
        opening = open_run(
            self._engine,
            session_id=session_id,
            run_id=run_id,
            query=query,
            limits=limits,
            timeout_s=timeout_s,
            deadline=deadline,
            policies=RetryPolicies() if policies is None else policies,
            agent=agent,
            flow=flow,
            actor=actor,
            environment=environment,
            labels=labels,
            parent_run_id=parent_run_id,
            continues_run_id=continues_run_id,
            traceparent=traceparent,
        )
        return RunBlock(self._engine, opening)
