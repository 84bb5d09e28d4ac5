"""A run written by hand: real events, and the rows that a ledger would project from them."""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

from harness import events as e
from harness.ids import boundary_id
from ledger.bytes import body_hash, genesis_link, next_link
from ledger.projections.incidents import incident_of
from ledger.records import (
    AgentStep,
    ChatSession,
    ContentView,
    RecordedEvent,
    RunDetail,
    RunSummary,
    RunTrace,
    ToolInvocation,
)

FAKE_LEDGER = "ledger-of-hand-written-runs"
START_US = 1_796_001_247_207_214  # 30 Nov 2026 01:14:07 UTC


def scopes(path: str) -> tuple[str, ...]:
    return tuple(unquote(segment) for segment in path.split("/")) if path else ()


def content(value: object, *, state="stored") -> ContentView:
    """Text as text, anything else as JSON."""
    text = isinstance(value, str)
    data = value.encode() if isinstance(value, str) else json.dumps(value, separators=(",", ":")).encode()
    return ContentView(
        digest=hashlib.sha256(data).hexdigest(),
        size_bytes=len(data),
        media_type="text/plain; charset=utf-8" if text else "application/json",
        state=state,
        data=data if state == "stored" else None,
    )


@dataclass
class FakeRun:
    """Append events at given times; `trace()` is what a reader would return."""

    session_id: str
    run_id: str
    query: str | None
    limits: dict[str, int]
    timeout_us: int = 60_000_000
    started_us: int = START_US
    detail: dict[str, Any] = field(default_factory=dict)
    submitted: list[e.Event] = field(default_factory=list)
    events: list[RecordedEvent] = field(default_factory=list)
    steps: dict[str, AgentStep] = field(default_factory=dict)
    tools: list[ToolInvocation] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)
    reserved: dict[str, int] = field(default_factory=dict)
    unknown_usage: int = 0
    transitions: list[dict[str, Any]] = field(default_factory=list)
    boundaries: dict[str, str] = field(default_factory=dict)
    """Of nested scopes."""
    answer: ContentView | None = None
    feedback: dict[str, Any] | None = None
    evaluation: dict[str, Any] | None = None
    now_us: int = 0

    def add(self, event_model: type[e.Event], /, at_ms: float | None = None, **fields: Any) -> RecordedEvent:
        """One event at `at_ms` after the start; None for what the owner did not write."""
        if at_ms is not None:
            self.now_us = round(at_ms * 1000)
        own: dict[str, Any] = {"session_id": self.session_id, "run_id": self.run_id, "stream_id": f"r:{self.run_id}"}
        if at_ms is not None:
            own["elapsed_us"] = self.now_us
        seq = len(self.events) + 1
        event = event_model(event_id=f"w0:{seq}", occurred_us=self.started_us + self.now_us, **{**own, **fields})
        body = event.model_dump_json(exclude_none=True).encode()
        digest, recorded_us = body_hash(body), event.occurred_us + 900
        before = bytes.fromhex(self.events[-1].link) if self.events else genesis_link(FAKE_LEDGER, event.stream_id)
        recorded = RecordedEvent(
            pos=seq,
            seq=seq,
            event_id=event.event_id,
            type=event.type,
            version=event.version,
            occurred_us=event.occurred_us,
            recorded_us=recorded_us,
            elapsed_us=own.get("elapsed_us"),
            fields=json.loads(body),
            body=body,
            body_hash=digest.hex(),
            link=next_link(before, seq, recorded_us, digest).hex(),
        )
        self.submitted.append(event)
        self.events.append(recorded)
        return recorded

    def start(self, **fields: Any) -> "FakeRun":
        self.detail = {**self.detail, **fields}
        known = {key: value for key, value in fields.items() if key in e.RunStarted.model_fields}
        self.add(e.RunStarted, 0, limits=self.limits, timeout_us=self.timeout_us, **known)
        return self

    def ask_to_stop(self, actor: str | None = None, reason: str = "USER_REQUESTED") -> None:
        """What anybody may ask of it from outside."""
        self.add(e.CancellationRequested, reason=reason, actor=actor)

    def charge(self, **amounts: int) -> None:
        for key, amount in amounts.items():
            name = f"tool:{key.removeprefix('tool_')}" if key.startswith("tool_") and key != "tool_calls" else key
            self.usage[name] = self.usage.get(name, 0) + amount

    def model(
        self,
        start_ms,
        end_ms,
        name,
        *,
        scope="",
        ordinal=1,
        attempt=1,
        of=1,
        tokens=(812, 204),
        output="",
        failure=None,
        said=None,
        model="offline-rules-1",
        prompt=None,
        scope_id=None,
        reserve=None,
        cost=None,
        timeout_ms=None,
        first_ms=None,
        chunks=None,
        passes=(),
        hidden=0,
    ) -> None:
        """One attempt of a model step; `end_ms` None leaves it open. `passes` are observed limits, `hidden` a count."""
        step_boundary = boundary_id(scopes(scope), "model", name, ordinal, attempt).rpartition("/")[0]
        reserve = reserve or {}
        timeout_us = None if timeout_ms is None else timeout_ms * 1_000
        self.charge(model_calls=1, **reserve)
        usage = {"model_calls": 1, **reserve}
        numbers = {"attempt": attempt, "max_attempts": of}
        started = {"scope_id": scope_id, "timeout_us": timeout_us, "operation": "DIAGNOSIS_AGENT", "model": model}
        same = self._begin(
            start_ms, f"{step_boundary}/{attempt}", "model", name, usage=usage, passes=passes, **started, **numbers
        )
        step = self.steps.get(step_boundary) or self._step(step_boundary, scope, name, model, prompt, timeout_us)
        step = replace(step, attempt_count=attempt, hidden_retry_count=step.hidden_retry_count + hidden)
        for request in range(2, hidden + 2):
            self.add(e.HiddenRetryDetected, start_ms, **same, request=request, usage={"model_calls": 1})
            self.charge(model_calls=1)
        if end_ms is None:
            self.reserved = {key: self.reserved.get(key, 0) + amount for key, amount in reserve.items()}
        else:
            ended = {**same, "duration_us": round((end_ms - start_ms) * 1000)}
            if first_ms is not None:
                ended |= {"first_output_us": first_ms * 1_000, "output_chunks": chunks}
                step = replace(step, first_output_us=first_ms * 1_000, output_chunks=chunks)
            if failure:
                self.add(e.AttemptFailed, end_ms, **ended, failure=failure, will_retry=attempt < of)
                step = replace(step, status="FAILED", failure=failure, error=content(said) if said else None)
            else:
                self.add(e.AttemptSucceeded, end_ms, **ended)
                step = replace(step, status="SUCCESS", failure=None, output=content(output))
                step = self._settle(step, end_ms, tokens, cost, reserve, **same)
            step = replace(step, duration_us=self.now_us - step.started_elapsed_us)
            if failure and attempt < of:
                retry = {"failure": failure, "next_attempt": attempt + 1, "delay_us": 60_000}
                self.add(e.RetryScheduled, end_ms, **same, **retry)
        self.steps[step_boundary] = step

    def _begin(self, at_ms, boundary, kind, name, *, usage, passes, scope_id, **started) -> dict[str, str]:
        """Grant an attempt its reservation, and start it; what all its events say."""
        same = {"boundary": boundary, "attempt_id": f"a{len(self.events)}"}
        operation = {"kind": kind, "name": name, "scope_id": scope_id}
        self.add(e.ReservationGranted, at_ms, **same, **operation, usage=usage)
        for resource, limit in passes:
            self._pass(at_ms, boundary, kind, name, resource, limit, attempt_id=same["attempt_id"])
        self.add(e.AttemptStarted, at_ms, **same, **operation, **started)
        return same

    def _step(self, boundary, scope, name, model, prompt, timeout_us) -> AgentStep:
        """One that has just begun."""
        return AgentStep(
            run_id=self.run_id,
            session_id=self.session_id,
            step_no=len(self.steps) + 1,
            boundary=boundary,
            scope=scope,
            name=name,
            model=model,
            status="RUNNING",
            attempt_count=0,
            started_us=self.started_us + self.now_us,
            started_elapsed_us=self.now_us,
            duration_us=None,
            input_tokens=None,
            output_tokens=None,
            failure=None,
            error=None,
            input=prompt or content("…", state="digest_only"),
            output=None,
            timeout_us=timeout_us,
            cost_micros=None,
            first_output_us=None,
            output_chunks=None,
            hidden_retry_count=0,
        )

    def _settle(self, step, at_ms, tokens, cost, reserve, **same) -> AgentStep:
        """What a step used in the place of what was reserved for it; `tokens` None where nobody knows."""
        usage = dict(zip(("input_tokens", "output_tokens"), tokens, strict=True)) if tokens else None
        if usage and cost is not None:
            usage["cost_micros"] = cost
            step = replace(step, cost_micros=cost)
        self.add(e.UsageSettled, at_ms, **same, usage=usage, complete=usage is not None)
        if usage is None:
            self.unknown_usage += 1
            return step
        self.charge(**usage, total_tokens=sum(tokens))
        self.charge(**{key: -amount for key, amount in reserve.items()})
        return replace(step, input_tokens=tokens[0], output_tokens=tokens[1])

    def tool(
        self,
        start_ms,
        end_ms,
        name,
        args,
        *,
        scope="",
        ordinal=1,
        output=None,
        failure=None,
        said=None,
        effect="read",
        abandoned=False,
        call_id=None,
        scope_id=None,
        timeout_ms=None,
        passes=(),
    ) -> None:
        """One attempt of a tool."""
        timeout_us = None if timeout_ms is None else timeout_ms * 1_000
        boundary = boundary_id(scopes(scope), "tool", name, ordinal, 1)
        self.charge(tool_calls=1, **{f"tool_{name}": 1})
        usage = {"tool_calls": 1, f"tool:{name}": 1}
        started = {"scope_id": scope_id, "timeout_us": timeout_us, "operation": "TOOL_CALL", "effect": effect}
        numbers = {"attempt": 1, "max_attempts": 1}
        same = self._begin(
            start_ms, boundary, "tool", name, usage=usage, passes=passes, **started, **numbers, call_id=call_id
        )
        tool = ToolInvocation(
            run_id=self.run_id,
            session_id=self.session_id,
            invocation_no=len(self.tools) + 1,
            **same,
            scope=scope,
            tool_name=name,
            call_id=call_id or f"call_{len(self.tools)}",
            tool_key=None,
            effect=effect,
            status="RUNNING",
            started_us=self.started_us + self.now_us,
            started_elapsed_us=self.now_us,
            duration_us=None,
            failure=None,
            error=None,
            input=content(args),
            output=None,
            timeout_us=timeout_us,
            hidden_retry_count=0,
        )
        if end_ms is not None and abandoned:
            self.add(e.AttemptAbandoned, end_ms, **same, reason="THREAD_NOT_STOPPED")
            tool = replace(tool, status="ABANDONED")
        elif end_ms is not None:
            duration_us = round((end_ms - start_ms) * 1000)
            tool = self._end_tool(tool, end_ms, duration_us, output=output, failure=failure, said=said, **same)
        self.tools.append(tool)

    def _end_tool(self, tool, at_ms, duration_us, *, output, failure, said, **same) -> ToolInvocation:
        """It failed, or gave this."""
        if failure:
            self.add(e.AttemptFailed, at_ms, **same, duration_us=duration_us, failure=failure, will_retry=False)
            error = content(said or failure)
            return replace(tool, status="FAILED", failure=failure, error=error, duration_us=duration_us)
        self.add(e.AttemptSucceeded, at_ms, **same, duration_us=duration_us)
        return replace(tool, status="SUCCESS", output=content(output), duration_us=duration_us)

    def guard(self, start_ms, end_ms, name, *, scope="", failure=None) -> None:
        boundary, attempt_id = boundary_id(scopes(scope), "guard", name, 1, 1), f"a{len(self.events)}"
        self.add(
            e.AttemptStarted,
            start_ms,
            boundary=boundary,
            attempt_id=attempt_id,
            kind="guard",
            name=name,
            operation="EVIDENCE_REPAIR",
            attempt=1,
            max_attempts=1,
        )
        ended = {"boundary": boundary, "attempt_id": attempt_id, "duration_us": round((end_ms - start_ms) * 1000)}
        if failure:
            self.add(e.AttemptFailed, end_ms, **ended, failure=failure, will_retry=False)
        else:
            self.add(e.AttemptSucceeded, end_ms, **ended)

    def open_scope(self, at_ms, scope_id, name, *, scope="", parent=None, ordinal=1, timeout_ms=None, **limits) -> None:
        """A nested scope; what lies in it has its boundary as its path."""
        timeout_us = None if timeout_ms is None else timeout_ms * 1_000
        boundary = boundary_id(scopes(scope), "scope", name, ordinal, 1)
        self.boundaries[scope_id] = boundary
        named = {"boundary": boundary, "scope_id": scope_id, "parent_scope_id": parent}
        limits = {key.replace("__", ":"): limit for key, limit in limits.items()}
        self.add(e.ScopeOpened, at_ms, **named, limits=limits, timeout_us=timeout_us)

    def exhaust_scope(self, at_ms, scope_id, *, resource, used, limit, name=None, path="") -> None:
        """A scope at its limit, by the refusal of `name` if one is given."""
        figures = {"resource": resource, "used": used, "limit": limit, "scope_id": scope_id}
        if name is not None:
            boundary = boundary_id(scopes(path), "model", name, 9, 1)
            self.add(e.ReservationRejected, at_ms, boundary=boundary, kind="model", name=name, amount=1, **figures)
        self.add(e.ScopeExhausted, at_ms, boundary=self.boundaries[scope_id], **figures)

    def close_scope(self, at_ms, scope_id) -> None:
        self.add(e.ScopeClosed, at_ms, boundary=self.boundaries[scope_id], scope_id=scope_id)

    def decide(self, at_ms, name, *, scope="", allowed=False, reason="EFFECT_NOT_ALLOWED", effect="write") -> None:
        said = {"policy": "tool_rules", "allowed": allowed, "reason": reason, "effect": effect}
        boundary = boundary_id(scopes(scope), "tool", name, 8, 1)
        self.add(e.PolicyDecided, at_ms, boundary=boundary, kind="tool", name=name, **said)

    def _pass(self, at_ms, boundary, kind, name, resource, limit, **more) -> None:
        figures = {"resource": resource, "amount": 1, "used": limit, "limit": limit}
        self.add(e.LimitWouldReject, at_ms, boundary=boundary, kind=kind, name=name, **figures, **more)

    def transition(self, at_ms, source, target, cause="NEXT") -> None:
        number = len(self.transitions) + 1
        self.add(
            e.GraphTransitioned,
            at_ms,
            boundary=f"graph/transition/{number}/1",
            from_node=source,
            to_node=target,
            cause=cause,
        )
        self.transitions.append({"from": source, "to": target, "cause": cause})

    def refuse(self, at_ms, name, *, resource, used, limit, scope="", kind="tool", amount=1) -> None:
        boundary = boundary_id(scopes(scope), kind, name, 9, 1)
        self.add(
            e.ReservationRejected,
            at_ms,
            boundary=boundary,
            kind=kind,
            name=name,
            resource=resource,
            amount=amount,
            used=used,
            limit=limit,
        )
        self.detail["refused"] = {
            "resource": resource,
            "amount": amount,
            "used": used,
            "limit": limit,
            "boundary": boundary,
        }

    def end(self, at_ms, outcome, reason=None, *, answer=None, cancel=None, degraded=False, error=None) -> "FakeRun":
        if self.transitions and outcome == "SUCCESS":
            self.add(
                e.GraphFinished,
                at_ms,
                boundary="graph/finish/1/1",
                final_node=self.transitions[-1]["to"],
                reason="COMPOSED",
                degraded=degraded,
            )
        if cancel:
            self.add(e.CancellationSignalled, at_ms, boundary="run/cancel/1/1", reason=cancel)
            self.detail["cancel_reason"] = cancel
        if answer is not None:
            self.answer = content(answer)
            self.add(
                e.AnswerRecorded,
                at_ms,
                boundary="run/answer/1/1",
                answer_digest=self.answer.digest,
                answer_bytes=self.answer.size_bytes,
                answer_stored=True,
            )
        refused = self.detail.get("refused")
        over = {key: refused[key] for key in ("resource", "used", "limit")} if refused else {}
        self.add(e.RunTerminated, at_ms, boundary="run/end/1/1", outcome=outcome, reason=reason or outcome, **over)
        self.detail |= {
            "status": outcome,
            "outcome_reason": reason or outcome,
            "elapsed_us": self.now_us,
            "degraded": degraded,
            "ended_us": self.started_us + self.now_us,
            "error": content(error) if error else None,
        }
        return self

    def trace(self) -> RunTrace:
        detail = self.detail
        status = detail.get("status", "RUNNING")
        updated_us = self.started_us + self.now_us
        orchestration = None
        if self.transitions:
            orchestration = {
                "version": 1,
                "transitions": self.transitions,
                "final_node": self.transitions[-1]["to"],
                "termination_reason": detail.get("outcome_reason"),
                "degraded": detail.get("degraded", False),
                "evidence_retry_count": sum(step["cause"] == "REPAIR" for step in self.transitions),
            }
        preview = self.answer.text[:120] if self.answer and self.answer.text else None
        run = RunDetail(
            summary=RunSummary(
                self.run_id,
                self.session_id,
                self.query,
                status,
                detail.get("flow", "CHAT_GRAPH"),
                preview,
                len(self.steps),
                len(self.tools),
                self.started_us,
                updated_us,
            ),
            agent=detail.get("agent"),
            agent_version=detail.get("agent_version"),
            actor=detail.get("actor"),
            environment=detail.get("environment"),
            labels=detail.get("labels") or {},
            parent_run_id=detail.get("parent_run_id"),
            continues_run_id=detail.get("continues_run_id"),
            traceparent=detail.get("traceparent"),
            limits={key: limit for key, limit in self.limits.items() if not key.startswith("observe:")},
            observed_limits={key[8:]: limit for key, limit in self.limits.items() if key.startswith("observe:")},
            usage=self.usage,
            reserved=self.reserved,
            usage_unknown_count=self.unknown_usage,
            currency=detail.get("currency"),
            price_table=detail.get("price_table"),
            cost_unknown_count=detail.get("cost_unknown_count", 0),
            incidents=dict(Counter(filter(None, map(incident_of, self.submitted)))),
            timeout_us=self.timeout_us,
            started_us=self.started_us,
            ended_us=detail.get("ended_us"),
            elapsed_us=detail.get("elapsed_us"),
            outcome_reason=detail.get("outcome_reason"),
            cancel_reason=detail.get("cancel_reason"),
            error=detail.get("error"),
            refused=detail.get("refused"),
            degraded=detail.get("degraded", False),
            orchestration_trace=orchestration,
            event_count=len(self.events),
            head_link=self.events[-1].link,
        )
        session = ChatSession(
            self.session_id, "ACTIVE", 1 if self.answer else 0, self.started_us - 5_000_000, updated_us, None
        )
        return RunTrace(
            session, run, tuple(self.steps.values()), tuple(self.tools), self.evaluation, self.answer, self.feedback
        )
