"""What an application records of its run beside the work that it crosses boundaries with."""

from __future__ import annotations

from harness import events as e
from harness.block.scope import ScopeBlock
from harness.budget.limits import ScopeLimits
from harness.budget.usage import check_size
from harness.content import encode_content
from harness.context import RunContext, check_run
from harness.engine import Engine
from harness.errors import InvalidInput, ScopeExhausted
from harness.ids import check_code, check_name
from harness.redaction import captured


class Statements:
    """Nested scopes, flow, graph, answer and bytes of a run.

    None of these waits, so they are the same in every kind of harness.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def scope(
        self, run: RunContext, name: str, *, limits: ScopeLimits | None = None, timeout_s: float | None = None
    ) -> ScopeBlock:
        """A part of the run to enter with `with`, with limits and a time-out of its own that only narrow (SPEC D5).

        Passing one of them raises `ScopeExhausted` there, now and ever after; the run goes on.
        """
        return ScopeBlock(self._engine, run, name, limits, timeout_s)

    def select_flow(self, run: RunContext, flow: str) -> None:
        """Record which flow was chosen for the run, such as `CHAT_GRAPH` (SPEC D17)."""
        live = check_run(run).live
        with live.lock:
            run.accounts.check_open()
            boundary = run.boundary("flow", check_code("flow", flow))
            selected = live.event(e.FlowSelected, boundary=boundary, flow=flow, parent_attempt_id=run.attempt_id)
            live.record(selected, is_awaited=False)

    def transition(self, run: RunContext, from_node: str | None, to_node: str, *, cause: str = "NEXT") -> None:
        """Record that the graph enters `to_node`; `from_node` is None at its entry. `RunEnded` if it may not."""
        live = check_run(run).live
        with live.lock:
            run.accounts.check_open()
            fields = {"to_node": check_name("to_node", to_node), "cause": check_code("cause", cause)}
            if from_node is not None:
                fields["from_node"] = check_name("from_node", from_node)
            boundary = run.boundary("transition", to_node)
            entered = live.event(e.GraphTransitioned, boundary=boundary, parent_attempt_id=run.attempt_id, **fields)
            live.record(entered, is_awaited=False)

    def finish_graph(self, run: RunContext, *, final_node: str, reason: str, degraded: bool = False) -> None:
        """Record where and why the graph ended; `degraded` where a fallback gave the answer."""
        live = check_run(run).live
        with live.lock:
            run.accounts.check_open()
            if not isinstance(degraded, bool):
                raise InvalidInput("degraded", f"must be True or False, not {type(degraded).__name__}")
            fields = {"final_node": check_name("final_node", final_node), "reason": check_code("reason", reason)}
            finished = live.event(e.GraphFinished, boundary=live.once("graph"), degraded=degraded, **fields)
            live.record(finished, is_awaited=False)

    def answer(self, run: RunContext, text: str | bytes) -> None:
        """Give the run's one answer; it is recorded together with the termination."""
        live = check_run(run).live
        if not isinstance(text, str | bytes):
            raise InvalidInput("answer", f"must be a string or bytes, not {type(text).__name__}")
        said = captured(encode_content(text), self._engine.capture.answer)
        size_bytes = len(said.content.data)
        with live.lock:
            run.accounts.check_open()
            if live.answer is not None:
                raise InvalidInput("answer", "was given before")
            live.answer = said._replace(is_kept=False)
            try:
                if said.is_kept and size_bytes:
                    self.reserve_bytes(run, size_bytes, name="answer")
            except (InvalidInput, ScopeExhausted):
                live.answer = None
                raise
            live.answer = said

    def reserve_bytes(self, run: RunContext, size_bytes: int, *, name: str = "capture") -> None:
        """Charge bytes of captured content; passing a limit ends the run or nested scope and raises so (SPEC H9)."""
        check_size(size_bytes)
        live = check_run(run).live
        with live.lock:
            run.accounts.check_open()
            boundary = run.boundary("capacity", check_name("name", name))
            excess = run.accounts.find_excess({"run_bytes": size_bytes})
            if excess is None:
                events = run.accounts.charge_bytes(size_bytes, boundary=boundary, name=name)
                live.record(*events, is_awaited=False)
                return
            fields = excess.as_fields() | {"kind": "capacity", "name": name}
            run.accounts.refuse(excess, live.event(e.ReservationRejected, boundary=boundary, **fields))
            raise run.accounts.error(excess)
