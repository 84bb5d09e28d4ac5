"""An agent for tests: the real graph and tools over a model on a real socket, and what its journal holds."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from demo.agent import Agent
from demo.bounds import CHAT_LIMITS
from demo.chat import ChatAnswer, answer_question
from demo.graph import diagnosis_graph
from demo.memory.sqlite import SqliteMemory
from demo.offline_model import MODEL_NAME
from demo.serving import OpenApp, serving
from demo.tools import READ_ONLY, Sources
from demo.tools.errors import failure_type
from harness import Harness, Limits, MemoryJournal, SystemWallClock
from harness.adapters import openai as openai_adapter

DISKS = "Is any disk close to full?"


class NoRecords:
    """Evaluations are of no concern where there is no ledger."""

    async def record_evaluation(self, session_id: str, run_id: str, **fields: Any) -> None: ...

    async def clear_context(self, session_id: str) -> None: ...


@asynccontextmanager
async def agent_over(
    journal: MemoryJournal, folder: Path, open_model: OpenApp, **settings: Any
) -> AsyncIterator[Agent]:
    """An agent that asks the model which `open_model` opens, and looks at one log file in `folder`."""
    with serving("model", open_model) as url:
        async with agent_at(journal, folder, url, **settings) as agent:
            yield agent


@asynccontextmanager
async def agent_at(
    journal: MemoryJournal,
    folder: Path,
    model_url: str,
    *,
    model_timeout_s: float = 10,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    **settings: Any,
) -> AsyncIterator[Agent]:
    """An agent that asks the model at this address; `sleep` is how it waits between two attempts."""
    (folder / "logs").mkdir()
    (folder / "logs" / "app.log").write_text("kernel: No space left on device\n")
    classifiers = (openai_adapter.classify, failure_type)
    client = openai_adapter.make_async_client(base_url=f"{model_url}/v1", api_key="k", timeout_s=model_timeout_s)
    async with client:
        with closing(SqliteMemory(folder / "memory.db", SystemWallClock())) as memory:
            yield Agent(
                harness=Harness(journal, classifiers=classifiers, policies=(READ_ONLY,), sleep=sleep),
                chat=openai_adapter.Chat(client, MODEL_NAME),
                sources=Sources(folder / "logs"),
                memory=memory,
                records=NoRecords(),
                graph=diagnosis_graph(),
                **settings,
            )


async def ask(agent: Agent, question: str, session_id: str = "s-1", **settings: Any) -> ChatAnswer:
    """One question in a run of its own."""
    return await answer_question(agent, session_id, question, **({"started": lambda run: None} | settings))


def transitions(journal: MemoryJournal, run_id: str) -> list[tuple[str | None, str, str]]:
    """From where to where the graph went, and why."""
    return [(event.from_node, event.to_node, event.cause) for event in of_type(journal, run_id, "graph.transitioned")]


def of_type(journal: MemoryJournal, run_id: str, kind: str) -> list[Any]:
    """The run's events of one type."""
    return [event for event in journal.events(run_id) if event.type == kind]


def started(journal: MemoryJournal, run_id: str, part: str) -> list[Any]:
    """The run's attempts whose boundary has `part` in it, such as `/tool/`."""
    return [event for event in of_type(journal, run_id, "attempt.started") if part in event.boundary]


def limits(**changes: Any) -> Limits:
    """The limits of a chat, some of them changed."""
    return replace(CHAT_LIMITS, **changes)
