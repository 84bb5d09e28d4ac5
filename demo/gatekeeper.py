"""The gatekeeper: whether a run that people found useful is one to learn from, judged from its own record alone.

Its verdict is stored on the case and never prevents it (SPEC R6).
"""

from typing import Protocol

from demo.evaluation import CHAT_EVALUATION, RULE_EVALUATION
from harness import HarnessError
from ledger import LedgerError
from ledger.records import RunTrace

APPROVED = "APPROVED"
NOT_SUCCESSFUL = "NOT_SUCCESSFUL"
NO_ANSWER = "NO_ANSWER"
"""None was recorded, or it was erased."""
DEGRADED = "DEGRADED"
NO_TOOL_USED = "NO_TOOL_USED"
EVALUATION_FAILED = "EVALUATION_FAILED"
NOT_REVIEWED = "NOT_REVIEWED"
"""The run could not be read."""


def judge(trace: RunTrace) -> str:
    """The verdict: what speaks most against learning from the run, or that nothing does."""
    run = trace.run
    if run.summary.status != "SUCCESS":
        return NOT_SUCCESSFUL
    if trace.answer is None or not trace.answer.text or not run.summary.query:
        return NO_ANSWER
    if run.degraded:
        return DEGRADED
    if not any(tool.status == "SUCCESS" for tool in trace.tool_invocations):
        return NO_TOOL_USED
    evaluations = trace.self_evaluation or {}
    verdicts = [evaluations[name]["verdict"] for name in (CHAT_EVALUATION, RULE_EVALUATION) if name in evaluations]
    return APPROVED if verdicts and set(verdicts) == {"PASS"} else EVALUATION_FAILED


class Runs(Protocol):
    """The part of a ledger's reader that is used here."""

    async def trace(self, session_id: str, run_id: str) -> RunTrace:
        """Exactly that run."""


class Feedback(Protocol):
    """The part of a `ledger.Ledger` that is used here."""

    @property
    def reader(self) -> Runs: ...

    async def record_feedback(
        self,
        session_id: str,
        run_id: str,
        *,
        useful: bool,
        comment: str | None = ...,
        actor: str | None = ...,
        verdict: str = ...,
    ) -> str | None:
        """Bind feedback to the run; the id of its case, if it has one."""

    async def cancel(self, session_id: str, run_id: str, *, reason: str = ..., actor: str | None = ...) -> bool:
        """Ask the run to stop."""


class Gatekeeper:
    """Takes feedback for a ledger, and has a verdict stored on the case that useful feedback makes."""

    def __init__(self, ledger: Feedback) -> None:
        self._ledger = ledger

    async def record_feedback(
        self, session_id: str, run_id: str, *, useful: bool, comment: str | None = None, actor: str | None = None
    ) -> str | None:
        """As the ledger does it; an unknown run is refused by the ledger, whatever the gatekeeper could read."""
        verdict = await self._verdict(session_id, run_id) if useful else NOT_REVIEWED
        return await self._ledger.record_feedback(
            session_id, run_id, useful=useful, comment=comment, actor=actor, verdict=verdict
        )

    async def cancel(
        self, session_id: str, run_id: str, *, reason: str = "USER_REQUESTED", actor: str | None = None
    ) -> bool:
        """As the ledger does it."""
        return await self._ledger.cancel(session_id, run_id, reason=reason, actor=actor)

    async def _verdict(self, session_id: str, run_id: str) -> str:
        try:
            return judge(await self._ledger.reader.trace(session_id, run_id))
        except (LedgerError, HarnessError):
            return NOT_REVIEWED
