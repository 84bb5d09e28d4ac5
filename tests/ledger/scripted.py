"""Runs written by hand: submissions as a harness would make them, with every id and time known beforehand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness import events as e
from harness.content import SealedContent, content_digest, encode_content
from harness.ids import run_stream
from harness.journal import Submission

EPOCH_US = 1_800_000_000_000_000
LIMITS = {"model_calls": 100, "tool_calls": 100, "run_bytes": 1_000_000}


def seal(value: object, *, keep: bool = True, salt: bytes = b"\x07" * 32) -> SealedContent:
    """Content sealed with a salt that everybody knows."""
    content = encode_content(value)
    data = content.data if keep else None
    return SealedContent(content_digest(salt, content), salt, len(content.data), content.media_type, data)


class ScriptedRun:
    """Makes the events of one run, one millisecond apart."""

    def __init__(
        self, run_id: str = "run-1", session_id: str = "session-1", *, writer_id: str = "w1", epoch_us: int = EPOCH_US
    ) -> None:
        self.epoch_us = epoch_us
        self.run_id = run_id
        self.session_id = session_id
        self.writer_id = writer_id
        self.events_made = 0
        self.attempts_made = 0

    def event(self, model: type[e.RunEvent], /, **fields: Any) -> Any:
        """The run's next event."""
        self.events_made += 1
        stamp: dict[str, Any] = {
            "event_id": f"{self.writer_id}:{self.events_made}",
            "stream_id": run_stream(self.run_id),
            "session_id": self.session_id,
            "run_id": self.run_id,
            "occurred_us": self.epoch_us + self.events_made * 1_000,
            "elapsed_us": self.events_made * 1_000,
        }
        return model(**(stamp | fields))

    def submission(self, *events: e.Event, contents: tuple[SealedContent, ...] = (), **kw: Any) -> Submission:
        return Submission(self.session_id, self.run_id, events, contents, **kw)

    def start(self, **fields: Any) -> Submission:
        """The beginning of the run, with a question."""
        query = seal("What is wrong with host 7?")
        fields = {"limits": LIMITS, "timeout_us": 60_000_000, "query_digest": query.digest} | fields
        fields |= {"query_bytes": query.size_bytes, "query_stored": True}
        return self.submission(self.event(e.RunStarted, **fields), contents=(query,))

    def attempt(
        self,
        kind: str = "tool",
        name: str = "query_logs",
        *,
        ordinal: int | None = None,
        attempt: int = 1,
        **fields: Any,
    ) -> Attempt:
        """An attempt that can be started and ended."""
        self.attempts_made += 1
        boundary = f"{kind}/{name}/{ordinal or self.attempts_made}/{attempt}"
        return Attempt(self, kind, name, f"a{self.attempts_made}", boundary, attempt, fields)

    def request_cancellation(self, reason: str = "USER_REQUESTED") -> Submission:
        """What anybody may append to a running run."""
        return self.submission(self.event(e.CancellationRequested, reason=reason, elapsed_us=None))

    def signal_cancellation(self, reason: str) -> Submission:
        """What the run's owner appends when it tells the run to stop."""
        return self.submission(self.event(e.CancellationSignalled, boundary="cancellation/run/1/1", reason=reason))

    def answer(self, text: str = "The disk is full.") -> Submission:
        sealed = seal(text)
        fields = {"answer_digest": sealed.digest, "answer_bytes": sealed.size_bytes, "answer_stored": True}
        event = self.event(e.AnswerRecorded, boundary="answer/run/1/1", **fields)
        return self.submission(event, contents=(sealed,))

    def transition(self, to_node: str, from_node: str | None = None, cause: str = "NEXT") -> Submission:
        fields = {"to_node": to_node, "from_node": from_node, "cause": cause}
        boundary = f"transition/{to_node}/{self.events_made}/1"
        return self.submission(self.event(e.GraphTransitioned, boundary=boundary, **fields))

    def open_scope(self, scope_id: str, parent: str | None = None, **limits: int) -> Submission:
        fields = {"scope_id": scope_id, "parent_scope_id": parent, "limits": limits}
        return self.submission(self.event(e.ScopeOpened, boundary=f"scope/{scope_id}/1/1", **fields))

    def exhaust_scope(self, scope_id: str, resource: str = "model_calls", limit: int = 1) -> Submission:
        figures = {"resource": resource, "used": limit, "limit": limit}
        event = self.event(e.ScopeExhausted, boundary=f"scope/{scope_id}/1/1", scope_id=scope_id, **figures)
        return self.submission(event)

    def close_scope(self, scope_id: str) -> Submission:
        return self.submission(self.event(e.ScopeClosed, boundary=f"scope/{scope_id}/1/1", scope_id=scope_id))

    def decide(self, name: str = "query_logs", *, allowed: bool = False) -> Submission:
        """What a policy said of a tool call."""
        said = {"policy": "tool_rules", "allowed": allowed, "reason": "ALLOWED" if allowed else "EFFECT_NOT_ALLOWED"}
        boundary = f"tool/{name}/{self.events_made}/1"
        return self.submission(self.event(e.PolicyDecided, boundary=boundary, kind="tool", name=name, **said))

    def finish_graph(self, final_node: str = "composer", *, degraded: bool = False) -> Submission:
        fields = {"final_node": final_node, "reason": "COMPOSED", "degraded": degraded}
        return self.submission(self.event(e.GraphFinished, boundary="graph/run/1/1", **fields))

    def end(self, outcome: str = "SUCCESS", reason: str = "COMPLETED", **fields: Any) -> Submission:
        event = self.event(e.RunTerminated, boundary="termination/run/1/1", outcome=outcome, reason=reason, **fields)
        return self.submission(event)

    def whole(self) -> Iterator[Submission]:
        """A run as they usually are: a graph with a model step and a tool, an answer, success."""
        yield self.start(flow="CHAT_GRAPH", agent="triage", agent_version="1.4", labels={"team": "ops"})
        yield self.transition("planner")
        step = self.attempt("model", "planner", model="rules-1")
        yield step.start("Which logs?")
        yield step.succeed("query_logs", usage={"input_tokens": 12, "output_tokens": 3})
        yield self.transition("executor", "planner")
        tool = self.attempt("tool", "query_logs", call_id="call_0", effect="read")
        yield tool.start({"pattern": "OOM"})
        yield tool.succeed(["one", "two"])
        yield self.finish_graph("executor")
        yield self.answer()
        yield self.end()


class Attempt:
    """One attempt of a scripted run."""

    def __init__(
        self,
        run: ScriptedRun,
        kind: str,
        name: str,
        attempt_id: str,
        boundary: str,
        number: int,
        fields: dict[str, Any],
    ) -> None:
        self.run = run
        self.kind = kind
        self.name = name
        self.attempt_id = attempt_id
        self.boundary = boundary
        self.number = number
        self.fields = fields

    def event(self, model: type[e.RunEvent], /, **fields: Any) -> Any:
        return self.run.event(model, boundary=self.boundary, attempt_id=self.attempt_id, **fields)

    def start(
        self, given: object = "input", *, keep: bool = True, reserve: Mapping[str, int] | None = None
    ) -> Submission:
        """Reservation and start, in one append."""
        sealed = seal(given, keep=keep)
        charges = {"tool_calls": 1, f"tool:{self.name}": 1} if self.kind == "tool" else {"model_calls": 1}
        granted = self.event(
            e.ReservationGranted,
            kind=self.kind,
            name=self.name,
            usage={**charges, **(reserve or {})},
            scope_id=self.fields.get("scope_id"),
        )
        started = self.event(
            e.AttemptStarted,
            kind=self.kind,
            name=self.name,
            operation="TOOL_CALL",
            attempt=self.number,
            max_attempts=2,
            input_digest=sealed.digest,
            input_bytes=sealed.size_bytes,
            input_stored=keep,
            **self.fields,
        )
        return self.run.submission(granted, started, contents=(sealed,))

    def succeed(self, result: object = "output", usage: dict[str, int] | None = None, **stream: int) -> Submission:
        sealed = seal(result)
        fields = {**stream, "output_digest": sealed.digest, "output_bytes": sealed.size_bytes, "output_stored": True}
        end = self.event(e.AttemptSucceeded, duration_us=700, **fields)
        return self.run.submission(end, *self._settled(usage), contents=(sealed,))

    def fail(
        self,
        failure: str = "TRANSPORT",
        *,
        will_retry: bool = False,
        usage: dict[str, int] | None = None,
        **stream: int,
    ) -> Submission:
        sealed = seal("connection refused")
        fields = {**stream, "error_digest": sealed.digest, "error_bytes": sealed.size_bytes, "error_stored": True}
        end = self.event(e.AttemptFailed, duration_us=300, failure=failure, will_retry=will_retry, **fields)
        return self.run.submission(end, *self._settled(usage), contents=(sealed,))

    def abandon(self, reason: str = "RUN_ENDED") -> Submission:
        return self.run.submission(self.event(e.AttemptAbandoned, reason=reason))

    def finish_late(self, usage: dict[str, int] | None = None) -> Submission:
        late = self.event(e.AttemptFinishedLate, duration_us=90_000, succeeded=True)
        return self.run.submission(late, *self._settled(usage))

    def retry_unseen(self, request: int = 2, usage: dict[str, int] | None = None) -> Submission:
        """A request of its own that something inside it sent."""
        return self.run.submission(self.event(e.HiddenRetryDetected, request=request, usage=usage))

    def pass_observed(self, resource: str = "tool_calls", limit: int = 1) -> Submission:
        """What it is let through against a limit that is only observed."""
        figures = {"kind": self.kind, "name": self.name, "resource": resource, "amount": 1, "used": limit}
        return self.run.submission(self.event(e.LimitWouldReject, limit=limit, **figures))

    def _settled(self, usage: dict[str, int] | None) -> tuple[e.RunEvent, ...]:
        if self.kind != "model":
            return ()
        return (self.event(e.UsageSettled, usage=usage, complete=usage is not None),)
