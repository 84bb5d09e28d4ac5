"""A recorded run of the demo, executed again offline: the real graph, with everything that it was given on record.

What the conversation remembered when the run began is told by the earlier runs of its session.
"""

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import psutil
from pydantic import TypeAdapter

from demo.agent import Agent
from demo.ai_ops import asked_of, check_machine
from demo.chat import TURNS_REMEMBERED, UNAVAILABLE, answer_question
from demo.errors import DemoError
from demo.graph import diagnosis_graph
from demo.graph.state import SEMANTIC_GUARD
from demo.memory import Turn, cut
from demo.model import Choice
from demo.offline_model import MODEL_NAME
from demo.prompts import WHOLE_MACHINE_CHECK
from demo.router import Flow
from demo.settings import NO_KEY
from demo.tools import Sources, ToolError
from demo.tools.errors import failure_type
from harness import Harness, Limits
from harness.adapters import openai as openai_adapter
from harness.events import AttemptStarted
from harness.replay import Decoder, Errors, Recording, Reexecution, reexecute
from ledger import LedgerReader, RunTrace
from ledger.audit.recording import read_recording

PAGE_RUNS = 100
NOWHERE = "http://127.0.0.1:9/v1"
"""The address of a model that is never asked."""
Again = Callable[[Harness], Awaitable[Any]]


class NotAllRecorded(DemoError):
    """The run cannot be executed again from its beginning."""

    code = "not_all_recorded"


class RecordedMemory:
    """What the session remembered when the run began; what is remembered of it now is nobody's business."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = tuple(turns)

    async def recall(self, session_id: str) -> tuple[Turn, ...]:
        """As `Memory.recall`."""
        return self._turns

    async def remember(self, session_id: str, turn: Turn) -> None:
        """Nothing."""

    async def forget(self, session_id: str) -> None:
        """Nothing."""


class NoRecords:
    """Verdicts of a run are not recorded again."""

    async def record_evaluation(self, session_id: str, run_id: str, **said: Any) -> None:
        """Nothing."""

    async def clear_context(self, session_id: str) -> None:
        """Nothing."""


def execute_again(db_url: str, session_id: str, run_id: str) -> Reexecution:
    """Execute a recorded run again; blocks. A `LedgerError` where it cannot be read."""
    recording, turns = asyncio.run(_read(db_url, session_id, run_id))
    return compare(recording, agent_again(recording, turns))


def compare(recording: Recording, again: Again) -> Reexecution:
    """The run against code that does the same, or should."""
    classifiers = (openai_adapter.classify, failure_type)
    return reexecute(recording, again, decode=DECODE, errors=ERRORS, classifiers=classifiers)


def agent_again(recording: Recording, turns: Sequence[Turn], **changes: Any) -> Again:
    """What the app does for such a request, within the limits that the run had; `changes` are of the agent."""
    started = recording.started
    question = recording.text(started.query_digest)
    if question is None:
        raise NotAllRecorded("cannot re-execute from event 1: the question was withheld or erased")

    async def again(harness: Harness) -> None:
        client = openai_adapter.make_async_client(base_url=NOWHERE, api_key=NO_KEY, timeout_s=1)
        async with client:
            made: dict[str, Any] = {
                "harness": harness,
                "chat": openai_adapter.Chat(client, _model_of(recording)),
                "sources": Sources.as_recorded(started.labels or {}),
                "memory": RecordedMemory(turns),
                "records": NoRecords(),
                "graph": diagnosis_graph(),
                "limits": Limits.from_map(started.limits),
                "timeout_s": started.timeout_us / 1e6,
            }
            agent = Agent(**(made | changes))
            if started.flow == Flow.AI_OPS.value:
                asked = None if question == WHOLE_MACHINE_CHECK else question
                await check_machine(agent, started.session_id, asked, _to_nobody, started=lambda run: None)
            else:
                await answer_question(agent, started.session_id, question, started=lambda run: None)

    return again


async def read_turns(reader: LedgerReader, recording: Recording) -> list[Turn]:
    """The conversation as it was when the run began: the last turns before it, as many as its label says."""
    started = recording.started
    said = (started.labels or {}).get(TURNS_REMEMBERED, UNAVAILABLE)
    turns_max = 0 if said == UNAVAILABLE else int(said)
    earlier: list[RunTrace] = []
    cursor: str | None = None
    while len(earlier) < turns_max:
        page = await reader.session_runs(started.session_id, PAGE_RUNS, cursor)
        for row in page.rows:
            if row.status == "SUCCESS" and row.created_us < started.occurred_us and len(earlier) < turns_max:
                trace = await reader.overview(started.session_id, row.run_id)
                if (trace.run.ended_us or started.occurred_us) < started.occurred_us:
                    earlier.append(trace)
        cursor = page.next_cursor
        if cursor is None:
            break
    earlier.sort(key=lambda trace: trace.run.ended_us or 0)
    return [_turn(trace) for trace in earlier]


async def _read(db_url: str, session_id: str, run_id: str) -> tuple[Recording, list[Turn]]:
    async with await LedgerReader.open(db_url) as reader:
        recording = await read_recording(reader, session_id, run_id)
        return recording, await read_turns(reader, recording)


def _turn(trace: RunTrace) -> Turn:
    question, answer = trace.run.summary.query, None if trace.answer is None else trace.answer.text
    if question is None or answer is None:
        raise NotAllRecorded(
            f"cannot re-execute: run {trace.run.summary.run_id} of the conversation was erased, and it was remembered"
        )
    if trace.run.summary.agent_flow == Flow.AI_OPS.value:
        question = asked_of(None if question == WHOLE_MACHINE_CHECK else question)
    return Turn(cut(question), cut(answer))


def _model_of(recording: Recording) -> str:
    """The name of the model that was asked."""
    started = (event for event in recording.events if isinstance(event, AttemptStarted))
    return next((event.model for event in started if event.model is not None), MODEL_NAME)


async def _to_nobody(message: dict[str, Any]) -> None:
    """Whoever read the report is gone."""


def _decoder(kind: type[Any]) -> Decoder:
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    return lambda data: adapter.validate_python(json.loads(data))


def _named(base: type[Exception], *names: str) -> Errors:
    return {name: type(name, (base,), {}) for name in names}


DECODE = {"router": _decoder(Choice), SEMANTIC_GUARD: _decoder(Choice), "model": _decoder(openai_adapter.ChatReply)}
"""What the models' replies are in the code."""
ERRORS: Errors = {
    **{kind.__name__: kind for kind in ToolError.__subclasses__()},
    **_named(psutil.Error, "NoSuchProcess", "ZombieProcess", "AccessDenied"),
    **_named(sqlite3.Error, "OperationalError", "DatabaseError"),
}
"""What tools raise and the code tells the model about."""
