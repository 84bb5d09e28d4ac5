"""The harness: opens runs, and records what they say of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness import events as e
from harness.budget import Limits, check_size, find_excess
from harness.calls import Calls
from harness.cancellation import CancelReason
from harness.content import encode_content
from harness.context import RunContext
from harness.engine import Engine
from harness.errors import InvalidInput
from harness.ids import check_code, check_name
from harness.journal import Journal
from harness.live import LiveRun
from harness.opening import open_run
from harness.retry import RetryPolicies
from harness.scope import RunScope


class Harness(Calls):
    """Holds runs to their limits and records every boundary they cross.

    One harness serves any number of runs, and keeps nothing of them. `model`, `tool` and `guard` are plain functions
    that return an awaitable: the call gives the boundary its ordinal, awaiting it does the work (SPEC D7).
    """

    def __init__(self, journal: Journal, **settings: Any) -> None:
        """`settings` are the other fields of `harness.engine.Engine`: clocks, ids, capture, time-outs."""
        super().__init__(Engine(journal, **settings))

    def run(
        self,
        *,
        session_id: str,
        limits: Limits,
        timeout_s: float,
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
    ) -> RunScope:
        """A run to enter with `async with`; `agent` is `name` or `name@version`. `InvalidInput` for any bad value."""
        opening = open_run(
            self._engine,
            session_id=session_id,
            run_id=run_id,
            query=query,
            limits=limits,
            timeout_s=timeout_s,
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
        return RunScope(self._engine, opening)

    def select_flow(self, run: RunContext, flow: str) -> None:
        """Record which flow was chosen for the run, such as `CHAT_GRAPH` (SPEC D17)."""
        live: LiveRun = run.live
        with live.lock:
            live.check_running()
            boundary = run.boundary("flow", check_code("flow", flow))
            selected = live.event(e.FlowSelected, boundary=boundary, flow=flow, parent_attempt_id=run.attempt_id)
            live.record(selected, is_awaited=False)

    def transition(self, run: RunContext, from_node: str | None, to_node: str, *, cause: str = "NEXT") -> None:
        """Record that the graph enters `to_node`; `from_node` is None at its entry. `RunEnded` if it may not."""
        live: LiveRun = run.live
        with live.lock:
            live.check_running()
            fields = {"to_node": check_name("to_node", to_node), "cause": check_code("cause", cause)}
            if from_node is not None:
                fields["from_node"] = check_name("from_node", from_node)
            boundary = run.boundary("transition", to_node)
            entered = live.event(e.GraphTransitioned, boundary=boundary, parent_attempt_id=run.attempt_id, **fields)
            live.record(entered, is_awaited=False)

    def finish_graph(self, run: RunContext, *, final_node: str, reason: str, degraded: bool = False) -> None:
        """Record where and why the graph ended; `degraded` where a fallback gave the answer."""
        live: LiveRun = run.live
        with live.lock:
            live.check_running()
            fields = {"final_node": check_name("final_node", final_node), "reason": check_code("reason", reason)}
            finished = live.event(e.GraphFinished, boundary=live.once("graph"), degraded=bool(degraded), **fields)
            live.record(finished, is_awaited=False)

    def answer(self, run: RunContext, text: str | bytes) -> None:
        """Give the run's one answer; it is recorded together with the termination."""
        live: LiveRun = run.live
        content = encode_content(text)
        size_bytes = len(content.data)
        with live.lock:
            live.check_running()
            if live.answer is not None:
                raise InvalidInput("answer", "was given before")
            keep = content.is_kept(self._engine.capture.answer)
            live.answer = (content, False)
            if keep and size_bytes:
                self.reserve_bytes(run, size_bytes, name="answer")
            live.answer = (content, keep)

    def reserve_bytes(self, run: RunContext, size_bytes: int, *, name: str = "capture") -> None:
        """Charge bytes of captured content; passing the limit ends the run and raises `RunEnded` (SPEC H9)."""
        check_size(size_bytes)
        live: LiveRun = run.live
        with live.lock:
            live.check_running()
            amounts = {"run_bytes": size_bytes}
            fields = {"kind": "capacity", "name": check_name("name", name)}
            boundary = run.boundary("capacity", name)
            excess = find_excess(live.state.limits, live.state.usage, amounts)
            if excess is None:
                granted = live.event(e.ReservationGranted, boundary=boundary, usage=amounts, **fields)
                live.record(granted, is_awaited=False)
                return
            fields |= {"resource": excess.resource}
            figures = {"amount": excess.amount, "used": excess.used, "limit": excess.limit}
            rejected = live.event(e.ReservationRejected, boundary=boundary, **fields, **figures)
            live.stop(CancelReason.BUDGET_EXHAUSTED, excess=excess, before=(rejected,))
            raise live.ended(excess)
