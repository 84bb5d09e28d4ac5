"""One attempt at an operation that asks to be let through: what it would be charged, and what its start says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness import events as e
from harness.accounts import Call
from harness.attempt import Attempt
from harness.content import Content, SealedContent
from harness.context import RunContext
from harness.engine import Engine
from harness.errors import ToolDenied
from harness.ids import boundary_path
from harness.operation import Operation
from harness.policies import Verdict
from harness.state import scope_of


@dataclass(frozen=True, slots=True)
class Request:
    """Attempt `number` of an operation. What makes events is called with the run's lock held."""

    engine: Engine
    run: RunContext
    operation: Operation
    number: int
    given: Content
    verdicts: tuple[Verdict, ...] = ()
    """What the policies decided of it; the last may be a denial."""

    @property
    def boundary(self) -> str:
        operation = self.operation
        return boundary_path(self.run.scope, operation.kind, operation.name, operation.ordinal, self.number)

    @property
    def amounts(self) -> dict[str, int]:
        return self.operation.amounts(len(self.given.data) if self.keeps_input else 0)

    @property
    def keeps_input(self) -> bool:
        return self.given.is_kept(self.operation.capture(self.engine.capture, "input"))

    @property
    def call(self) -> Call | None:
        """What counts as a repetition; another attempt at the same call is none."""
        operation = self.operation
        return (operation.name, self.given.fingerprint) if operation.kind == "tool" and self.number == 1 else None

    @property
    def denial(self) -> ToolDenied | None:
        """Why it must not be let through, if a policy says so."""
        if not self.verdicts or self.verdicts[-1].decision.allowed:
            return None
        run, operation, verdict = self.run, self.operation, self.verdicts[-1]
        return ToolDenied(
            run.session_id,
            run.run_id,
            tool=operation.name,
            call_id=operation.call_id,
            policy=verdict.policy,
            reason=verdict.decision.reason,
        )

    def decided(self, digest: str | None = None) -> list[e.RunEvent]:
        """The policies' decisions; `digest` is that of the arguments, where these are on record."""
        operation, fields = self.operation, self.stamp
        fields |= {"effect": operation.effect, "call_id": operation.call_id, "input_digest": digest}
        return [
            self.run.live.event(
                e.PolicyDecided,
                policy=verdict.policy,
                allowed=verdict.decision.allowed,
                reason=verdict.decision.reason,
                **fields,
            )
            for verdict in self.verdicts
        ]

    def sealed(self) -> tuple[SealedContent, bool]:
        """The arguments, with their bytes where these are charged, and whether they are new to the run."""
        return self.run.live.sealer.seal(self.given, keep=self.keeps_input and self.denial is None)

    def started(self, sealed: SealedContent) -> tuple[Attempt, e.AttemptStarted]:
        """The attempt, and the event of its start."""
        live, operation = self.run.live, self.operation
        attempt = Attempt(self.engine, self.run, operation, self.number, live.next_attempt_id())
        is_ambiguous = any(other.scope == scope_of(attempt.boundary) for other in live.state.open_attempts.values())
        started = attempt.event(
            e.AttemptStarted,
            **self._named,
            scope_id=self.run.accounts.scope_id,
            operation=str(operation.operation),
            attempt=self.number,
            max_attempts=operation.policy.max_attempts,
            model=operation.model,
            call_id=operation.call_id,
            tool_key=operation.tool_key,
            effect=operation.effect,
            timeout_us=None if attempt.timeout_s is None else round(attempt.timeout_s * 1_000_000),
            ambiguous=True if is_ambiguous else None,
            input_digest=sealed.digest,
            input_bytes=sealed.size_bytes,
            input_stored=self.keeps_input,
        )
        attempt.start = started
        return attempt, started

    @property
    def stamp(self) -> dict[str, Any]:
        """What every event before its start says of it."""
        return {"boundary": self.boundary, "parent_attempt_id": self.run.attempt_id, **self._named}

    @property
    def _named(self) -> dict[str, str]:
        return {"kind": self.operation.kind, "name": self.operation.name}
