"""A run that is recorded in real time, and executed again, for tests."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from harness import Harness, MemoryJournal
from harness.concurrency.threads import ToolThreads
from harness.events import Event
from harness.replay import Recording, Reexecution, reexecute
from tests.harness.fakes import limits

Agent = Callable[[Harness], Awaitable[Any]]
QUIET_S = 0.02


class Recorder:
    """Records a run of an agent, as real time goes by."""

    def __init__(self, **settings: Any) -> None:
        self.journal = MemoryJournal()
        self.harness = Harness(self.journal, threads=ToolThreads(idle_s=0.0), **settings)

    def record(self, agent: Agent) -> Recording:
        """What is on record once the agent is done, whichever way it ended."""

        async def to_its_end() -> None:
            with contextlib.suppress(Exception, asyncio.CancelledError):
                await agent(self.harness)

        asyncio.run(to_its_end())
        return self.recording

    @property
    def recording(self) -> Recording:
        (run_id,) = self.journal._events
        return Recording(self.journal.events(run_id), self.journal.contents)


def record(agent: Agent, **settings: Any) -> Recording:
    return Recorder(**settings).record(agent)


def again(recording: Recording, agent: Agent, **settings: Any) -> Reexecution:
    """The re-execution, which does not wait long for what will not come."""
    return reexecute(recording, agent, **({"quiet_s": QUIET_S} | settings))


def opened(harness: Harness, **changed: Any) -> Any:
    """A run of the one session of these tests."""
    fields: dict[str, Any] = {"session_id": "s", "limits": limits(), "timeout_s": 60} | changed
    return harness.run(**fields)


def without(recording: Recording, event: Event) -> Recording:
    """The record without one of its events."""
    return replace(recording, events=[each for each in recording.events if each is not event])
