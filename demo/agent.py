"""The agent: what it is made of, and the run that governs each thing it does."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Protocol

from demo.bounds import CHAT_LIMITS, CHAT_TIMEOUT_S
from demo.errors import DemoError
from demo.graph.build import Graph
from demo.memory import Memory
from demo.model import Trip
from demo.tools import Sources, tools_for
from harness import Harness, HarnessError, Limits, Outcome, RunContext, RunEnded, TerminationNotRecorded
from harness.adapters.asgi import Receive, stop_on_disconnect
from harness.adapters.openai import Chat

AGENT_NAME = "diagnosis"
AGENT_VERSION = "1"

log = logging.getLogger(__name__)


class Records(Protocol):
    """What is recorded of runs beside their boundaries; a `Ledger` does it."""

    async def record_evaluation(
        self, session_id: str, run_id: str, *, evaluator: str, verdict: str, rationale: str | None = None
    ) -> None:
        """Record a verdict on a run (SPEC R7)."""

    async def clear_context(self, session_id: str) -> None:
        """Record that later runs of the session hear nothing of earlier ones."""


@dataclass(frozen=True, slots=True)
class Agent:
    """Everything that a chat or a check needs; one serves any number of runs."""

    harness: Harness
    chat: Chat
    sources: Sources
    memory: Memory
    records: Records
    graph: Graph
    limits: Limits = CHAT_LIMITS
    timeout_s: float = CHAT_TIMEOUT_S

    def trip(self, run: RunContext) -> Trip:
        """The means to do the run's work."""
        return Trip(run, self.harness, self.chat, self.sources)

    def _limits(self) -> Limits:
        """Those of the tools that are offered, and of everything else: what is not there needs no limit of its own."""
        offered = {tool.name for tool in tools_for(self.sources)}
        return replace(
            self.limits, per_tool={name: limit for name, limit in self.limits.per_tool.items() if name in offered}
        )

    @asynccontextmanager
    async def run(
        self,
        session_id: str,
        question: str,
        *,
        flow: str | None = None,
        labels: Mapping[str, str] | None = None,
        receive: Receive | None = None,
    ) -> AsyncIterator[RunContext]:
        """A run of the session; once it has begun, whatever ends it early is a `RunEnded` with both ids (SPEC D14).

        It is stopped when the client of a request goes away, of which `receive` gets the messages.
        """
        run: RunContext | None = None
        try:
            async with self.harness.run(
                session_id=session_id,
                query=question,
                agent=f"{AGENT_NAME}@{AGENT_VERSION}",
                flow=flow,
                labels={**self.sources.labels, **(labels or {})},
                limits=self._limits(),
                timeout_s=self.timeout_s,
            ) as run:
                try:
                    async with nullcontext() if receive is None else stop_on_disconnect(run, receive):
                        yield run
                except DemoError as error:
                    run.lifecycle.finish(Outcome.FAILED, error.code.upper())
                    raise
        except (RunEnded, TerminationNotRecorded):
            raise
        except Exception as error:
            end = None if run is None else run.lifecycle.termination
            if run is None or end is None:
                raise
            if not isinstance(error, HarnessError | DemoError):
                log.error("run %s/%s failed: %s", run.session_id, run.run_id, type(error).__name__)
            raise RunEnded(run.session_id, run.run_id, outcome=end.outcome.value, reason=end.reason) from error
