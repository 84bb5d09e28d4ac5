"""Records as the JSON that the API gives: camelCase, times in RFC 3339, free text with its state (SPEC R4, R5, D14)."""

from collections.abc import Mapping
from typing import Any, cast

import orjson

from ledger.lists import RunLine, SessionLine
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
from ledger.words.format import instant
from viewer.api import shapes

Json = dict[str, Any]


def trace_body(trace: RunTrace) -> shapes.Trace:
    """Exactly one run: the seven members of the trace, and no other."""
    return {
        "chatSession": session_body(trace.chat_session),
        "run": run_body(trace),
        "agentSteps": [step_body(step) for step in trace.agent_steps],
        "toolInvocations": [tool_body(tool) for tool in trace.tool_invocations],
        "selfEvaluation": evaluation_body(trace.self_evaluation),
        "answer": None if trace.answer is None else trace.answer.text,
        "feedback": feedback_body(trace.feedback),
    }


def session_body(session: ChatSession) -> shapes.Session:
    """Conversation metadata."""
    return {
        "sessionId": session.session_id,
        "status": session.status,
        "messagePairCount": session.message_pair_count,
        "createdAt": instant(session.created_us),
        "lastActiveAt": instant(session.last_active_us),
        "expiresAt": instant_or_null(session.expires_us),
    }


def summary_body(run: RunSummary) -> shapes.RunSummary:
    """One line of a run list: the ten fields, and no other."""
    return {
        "runId": run.run_id,
        "sessionId": run.session_id,
        "query": run.query,
        "status": run.status,
        "agentFlow": run.agent_flow,
        "answerPreview": run.answer_preview,
        "stepCount": run.step_count,
        "toolCallCount": run.tool_call_count,
        "createdAt": instant(run.created_us),
        "updatedAt": instant(run.updated_us),
    }


def run_body(trace: RunTrace) -> shapes.Run:
    """The run itself; the answer's content is described here, so that an erased answer is told from none."""
    run: RunDetail = trace.run
    return {
        **summary_body(run.summary),
        **_facts(run),
        "parentRunId": run.parent_run_id,
        "continuesRunId": run.continues_run_id,
        "traceparent": run.traceparent,
        "limits": _resources(run.limits),
        "observedLimits": _resources(run.observed_limits),
        "usage": _resources(run.usage),
        "reserved": _resources(run.reserved),
        "priceTable": run.price_table,
        "startedAt": instant(run.started_us),
        "cancelReason": run.cancel_reason,
        "error": content_body(run.error),
        "refused": None if run.refused is None else camel(run.refused),
        "answerContent": content_facts(trace.answer),
        "orchestrationTrace": None if run.orchestration_trace is None else camel(run.orchestration_trace),
        "headLink": run.head_link,
    }


def line_body(run: RunLine) -> shapes.RunLine:
    """A line of the list of all runs."""
    return {
        **summary_body(run),
        **_facts(run),
        "inputTokens": run.input_tokens,
        "outputTokens": run.output_tokens,
        "costMicros": run.cost_micros,
        "useful": run.useful,
        "checkpointed": run.is_checkpointed,
    }


def session_line_body(session: SessionLine) -> shapes.SessionLine:
    """A line of the list of all sessions."""
    return {
        **session_body(session),
        "runCount": session.run_count,
        "newestRun": None if session.newest_run is None else line_body(session.newest_run),
    }


def _facts(run: RunDetail | RunLine) -> shapes.RunFacts:
    return {
        "agent": run.agent,
        "agentVersion": run.agent_version,
        "actor": run.actor,
        "environment": run.environment,
        "labels": dict(run.labels),
        "outcomeReason": run.outcome_reason,
        "degraded": run.degraded,
        "usageUnknownCount": run.usage_unknown_count,
        "currency": run.currency,
        "costUnknownCount": run.cost_unknown_count,
        "timeoutUs": run.timeout_us,
        "endedAt": instant_or_null(run.ended_us),
        "elapsedUs": run.elapsed_us,
        "incidents": camel(run.incidents),
        "eventCount": run.event_count,
    }


def step_body(step: AgentStep) -> shapes.AgentStep:
    """One logical model step."""
    return {
        **_attempted(step),
        "stepNo": step.step_no,
        "name": step.name,
        "model": step.model,
        "status": step.status,
        "attemptCount": step.attempt_count,
        "inputTokens": step.input_tokens,
        "outputTokens": step.output_tokens,
        "costMicros": step.cost_micros,
        "firstOutputUs": step.first_output_us,
        "outputChunks": step.output_chunks,
    }


def tool_body(tool: ToolInvocation) -> shapes.ToolInvocation:
    """One granted attempt of a tool."""
    return {
        **_attempted(tool),
        "invocationNo": tool.invocation_no,
        "attemptId": tool.attempt_id,
        "toolName": tool.tool_name,
        "callId": tool.call_id,
        "toolKey": tool.tool_key,
        "effect": tool.effect,
        "status": tool.status,
    }


def _attempted(work: AgentStep | ToolInvocation) -> shapes.Attempted:
    return {
        "runId": work.run_id,
        "sessionId": work.session_id,
        "boundary": work.boundary,
        "scope": work.scope,
        "startedAt": instant(work.started_us),
        "startedElapsedUs": work.started_elapsed_us,
        "durationUs": work.duration_us,
        "timeoutUs": work.timeout_us,
        "hiddenRetryCount": work.hidden_retry_count,
        "failure": work.failure,
        "error": content_body(work.error),
        "input": content_body(work.input),
        "output": content_body(work.output),
    }


def event_body(event: RecordedEvent) -> shapes.Event:
    """One event; `body` is, to the byte, what was recorded and hashed."""
    return {
        "seq": event.seq,
        "eventId": event.event_id,
        "type": event.type,
        "version": event.version,
        "occurredAt": instant(event.occurred_us),
        "recordedAt": instant(event.recorded_us),
        "recordedUs": event.recorded_us,
        "elapsedUs": event.elapsed_us,
        "body": cast(Any, orjson.Fragment(event.body)),
        "bodyHash": event.body_hash,
        "link": event.link,
    }


def content_body(content: ContentView | None) -> shapes.Content | None:
    """Free text with its digest and state; `text` is null where there are no bytes."""
    facts = content_facts(content)
    return None if content is None or facts is None else {**facts, "text": content.text}


def content_facts(content: ContentView | None) -> shapes.ContentFacts | None:
    """The same without the text."""
    if content is None:
        return None
    body: shapes.ContentFacts = {
        "digest": content.digest,
        "sizeBytes": content.size_bytes,
        "mediaType": content.media_type or None,
        "state": content.state,
    }
    if content.erasure is not None:
        erasure = content.erasure
        body["erasure"] = {"at": instant(erasure.erased_us), "actor": erasure.actor, "reason": erasure.reason}
    return body


def evaluation_body(evaluation: Mapping[str, Any] | None) -> Json | None:
    """What each evaluator said, by the evaluator's exact name (SPEC R7)."""
    return None if evaluation is None else {name: camel(said) for name, said in evaluation.items()}


def feedback_body(feedback: Mapping[str, Any] | None) -> Json | None:
    """The feedback that counts."""
    if feedback is None:
        return None
    body: Json = camel({key: value for key, value in feedback.items() if key != "recorded_us"})
    return {**body, "recordedAt": instant_or_null(feedback.get("recorded_us"))}


def camel(value: Any) -> Any:
    """A parsed structure with the keys of its mappings in camelCase."""
    if isinstance(value, Mapping):
        return {_camel_key(str(key)): camel(child) for key, child in value.items()}
    if isinstance(value, (list, tuple)):
        return [camel(child) for child in value]
    return value


def _camel_key(key: str) -> str:
    head, *rest = key.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


def _resources(amounts: Mapping[str, int]) -> shapes.Resources:
    """Limits or usage: each tool's own amount under `perTool`, by the tool's exact name."""
    body: Json = {_camel_key(key): amount for key, amount in amounts.items() if not key.startswith("tool:")}
    body["perTool"] = {key[len("tool:") :]: amount for key, amount in amounts.items() if key.startswith("tool:")}
    if "toolDefault" in body:
        body["perToolDefault"] = body.pop("toolDefault")
    return cast(shapes.Resources, body)


def instant_or_null(epoch_us: int | None) -> str | None:
    """A time that there may not be yet, nor ever."""
    return None if epoch_us is None else instant(epoch_us)
