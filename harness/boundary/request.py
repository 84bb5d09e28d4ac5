"""One attempt at an operation that asks to be let through: what it would be charged, and what its start says."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness import events as e
from harness.boundary.attempt import Attempt
from harness.boundary.capture import content_fields
from harness.boundary.deciding import Verdict
from harness.boundary.operation import Operation
from harness.budget.repeats import Call
from harness.content import Content, SealedContent
from harness.context import RunContext
from harness.engine import Engine
from harness.errors import ToolDenied
from harness.ids import boundary_id
from harness.redaction import captured
from harness.state import OpenAttempt, path_of

_IN_A_BATCH = re.compile(r"(?:^|/)batch/tools/([0-9]+)/1/[0-9]+$")


class Request:
    """Attempt `number` of an operation. What makes events is called with the run's lock held."""

    def __init__(
        self,
        engine: Engine,
        run: RunContext,
        operation: Operation,
        number: int,
        given: Content,
        verdicts: tuple[Verdict, ...] = (),
    ) -> None:
        """`verdicts` are what the policies decided of it; the last may be a denial."""
        self.denial: ToolDenied | None = None
        """Why it must not be let through, if a policy says so."""
        if verdicts and not verdicts[-1].decision.allowed:
            self.denial = _denied(run, operation, verdicts[-1])
        self.call: Call | None = None
        """What counts as a repetition; another attempt at the same call is none."""
        if operation.kind == "tool" and number == 1:
            self.call = Call(operation.name, operation.args)
        self.given = captured(given, operation.capture(engine.capture, "input"))
        """Its arguments, as far as they may be recorded."""
        self.amounts = operation.amounts(len(self.given.content.data) if self.given.is_kept else 0)
        self.boundary = boundary_id(run.path, operation.kind, operation.name, operation.ordinal, number)
        self._named = {"kind": operation.kind, "name": operation.name}
        self.stamp = {"boundary": self.boundary, "parent_attempt_id": run.attempt_id, **self._named}
        """What every event before its start says of it."""
        self._engine = engine
        self._run = run
        self._operation = operation
        self._number = number
        self._verdicts = verdicts

    def decided(self, digest: str | None = None) -> list[e.RunEvent]:
        """The policies' decisions; `digest` is that of the arguments, where these are on record."""
        operation = self._operation
        fields = {"effect": operation.effect, "call_id": operation.call_id, "input_digest": digest}
        return [
            self._run.live.event(
                e.PolicyDecided,
                policy=verdict.policy,
                allowed=verdict.decision.allowed,
                reason=verdict.decision.reason,
                **self.stamp,
                **fields,
            )
            for verdict in self._verdicts
        ]

    def sealed(self) -> tuple[SealedContent, bool]:
        """The arguments, with their bytes where these are charged, and whether they are new to the run."""
        return self._run.live.sealer.seal(self.given.content, keep=self.given.is_kept and self.denial is None)

    def attempt(self) -> Attempt:
        """The attempt, which has not started yet."""
        make = Attempt if self._engine.script is None else self._engine.script.attempt
        live = self._run.live
        return make(self._engine, self._run, self._operation, self._number, self.boundary, live.next_attempt_id())

    def started(self, attempt: Attempt, sealed: SealedContent) -> e.AttemptStarted:
        """The event of its start."""
        operation = self._operation
        is_ambiguous = _is_ambiguous(self.boundary, self._run.live.state.open_attempts.values())
        started = attempt.event(
            e.AttemptStarted,
            **self._named,
            scope_id=self._run.accounts.scope_id,
            operation=str(operation.policy.kind),
            attempt=self._number,
            max_attempts=operation.policy.max_attempts,
            model=operation.model,
            call_id=operation.call_id,
            tool_key=operation.tool_key,
            effect=operation.effect,
            timeout_us=None if attempt.timeout_s is None else round(attempt.timeout_s * 1_000_000),
            ambiguous=True if is_ambiguous else None,
            **content_fields("input", sealed, self.given),
        )
        attempt.start = started
        return started


def _denied(run: RunContext, operation: Operation, verdict: Verdict) -> ToolDenied:
    return ToolDenied(
        run.session_id,
        run.run_id,
        tool=operation.name,
        call_id=operation.call_id,
        policy=verdict.policy,
        reason=verdict.decision.reason,
    )


def _is_ambiguous(boundary: str, others: Iterable[OpenAttempt]) -> bool:
    """Whether only the order of the calls tells it from another: they have one path, and are not of one batch (D7)."""
    path, batch = _place(boundary)
    # Thousands may be open, nearly all elsewhere.
    for other in others:
        if other.boundary.startswith(path):
            other_path, other_batch = _place(other.boundary)
            if path == other_path and (batch is None or batch != other_batch):
                return True
    return False


def _place(boundary: str) -> tuple[str, str | None]:
    """The path of its caller, and the ordinal of the batch there that it is in."""
    path = path_of(boundary)
    found = _IN_A_BATCH.search(path)
    return (path, None) if found is None else (path[: found.start()], found[1])
