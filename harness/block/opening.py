"""What a run is opened with, checked whole before anything of the run exists (SPEC H1b, E11)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.boundary.capture import content_fields
from harness.budget.limits import Limits
from harness.content import Content, SealedContent, Sealer, encode_content
from harness.deadline import Deadline, check_timeout
from harness.engine import Engine
from harness.errors import InvalidInput
from harness.events import RunEvent, RunStarted
from harness.events.base import MAX_MAP_KEYS
from harness.ids import check_code, check_id, check_name
from harness.live.run import LiveRun
from harness.redaction import captured
from harness.retry import RetryPolicies

MAX_MAPS_BYTES = 12_000
"""Labels and limits together, as JSON; a journal bounds what one event may hold."""


@dataclass(frozen=True, slots=True)
class Opening:
    """A run that may begin."""

    session_id: str
    run_id: str
    timeout_s: float
    until: Deadline | None
    policies: RetryPolicies
    fields: Mapping[str, Any]
    """Of `run.started`, without the envelope."""
    contents: tuple[SealedContent, ...]
    sealer: Sealer

    def live_run(self, engine: Engine, started_ns: int, deadline: Deadline) -> LiveRun:
        """The run's shared state, before its beginning is recorded; its time counts from where its deadline does."""
        return LiveRun(
            self.session_id,
            self.run_id,
            started_ns=started_ns,
            deadline=deadline,
            monotonic_clock=engine.monotonic_clock,
            wall_clock=engine.wall_clock,
            journal=engine.journal,
            writer_id=engine.ids.writer_id(),
            sealer=self.sealer,
        )

    def deadline(self, started_ns: int) -> tuple[Deadline, int]:
        """When the run must have stopped if it begins then, and the microseconds until that."""
        at_ns = started_ns + round(self.timeout_s * 1_000_000_000)
        if self.until is not None:
            at_ns = min(at_ns, self.until.at_ns)
        return Deadline(at_ns), max(0, at_ns - started_ns) // 1_000

    def events(self, live: LiveRun, timeout_us: int) -> tuple[RunEvent, ...]:
        """The beginning; call with the run's lock held."""
        return (live.event(RunStarted, elapsed_us=0, timeout_us=timeout_us, **self.fields),)


def open_run(
    engine: Engine,
    *,
    session_id: str,
    run_id: str | None,
    query: str | bytes | None,
    limits: Limits,
    timeout_s: float,
    deadline: Deadline | None,
    policies: RetryPolicies,
    agent: str | None,
    flow: str | None,
    actor: str | None,
    environment: str | None,
    labels: Mapping[str, str] | None,
    parent_run_id: str | None,
    continues_run_id: str | None,
    traceparent: str | None,
) -> Opening:
    """Check everything; `InvalidInput` names the field that is wrong."""
    check_id("session_id", session_id)
    run_id = check_id("run_id", engine.ids.run_id() if run_id is None else run_id)
    timeout_s = check_timeout("timeout_s", timeout_s)
    if not isinstance(deadline, Deadline | None):
        raise InvalidInput("deadline", f"must be a Deadline, not {type(deadline).__name__}")
    if not isinstance(limits, Limits):
        raise InvalidInput("limits", f"must be Limits, not {type(limits).__name__}")
    engine.check_priced(limits)
    if not isinstance(policies, RetryPolicies):
        raise InvalidInput("policies", f"must be RetryPolicies, not {type(policies).__name__}")
    name, _, version = ("", "", "") if agent is None else check_name("agent", agent).partition("@")
    sealer = Sealer(engine.ids.salt)
    asked, contents = _seal_query(engine, sealer, query, limits)
    fields = {
        "limits": limits.as_map(),
        "agent": check_name("agent", name) if agent is not None else None,
        "agent_version": check_name("agent", version) if version else None,
        "flow": None if flow is None else check_code("flow", flow),
        "actor": None if actor is None else check_name("actor", actor),
        "environment": None if environment is None else check_name("environment", environment),
        "labels": _check_labels(labels),
        "parent_run_id": None if parent_run_id is None else check_id("parent_run_id", parent_run_id),
        "continues_run_id": None if continues_run_id is None else check_id("continues_run_id", continues_run_id),
        "traceparent": None if traceparent is None else check_name("traceparent", traceparent),
        "policy_digest": policies.digest(),
        "currency": None if engine.prices is None else engine.prices.currency,
        "price_table": None if engine.prices is None else engine.prices.version,
        **asked,
    }
    _check_size(fields)
    return Opening(session_id, run_id, timeout_s, deadline, policies, fields, contents, sealer)


def _seal_query(
    engine: Engine, sealer: Sealer, query: str | bytes | Content | None, limits: Limits
) -> tuple[dict[str, Any], tuple[SealedContent, ...]]:
    if query is None:
        return {}, ()
    if not isinstance(query, str | bytes):
        raise InvalidInput("query", f"must be a string or bytes, not {type(query).__name__}")
    asked = captured(encode_content(query), engine.capture.query)
    size_bytes = len(asked.content.data)
    if asked.is_kept and size_bytes > limits.run_bytes:
        raise InvalidInput("query", f"has {size_bytes} bytes, above limits.run_bytes {limits.run_bytes}")
    sealed, _ = sealer.seal(asked.content, keep=asked.is_kept)
    return content_fields("query", sealed, asked), (sealed,)


def _check_labels(labels: Mapping[str, str] | None) -> dict[str, str] | None:
    if labels is None:
        return None
    if not isinstance(labels, Mapping):
        raise InvalidInput("labels", f"must be a mapping, not {type(labels).__name__}")
    if len(labels) > MAX_MAP_KEYS:
        raise InvalidInput("labels", f"must be at most {MAX_MAP_KEYS}, not {len(labels)}")
    checked = {check_name("labels", key): check_name(f"labels[{key}]", value) for key, value in labels.items()}
    return checked or None


def _check_size(fields: Mapping[str, Any]) -> None:
    """Refuse what would not fit into the one event that begins the run."""
    size_bytes = sum(len(json.dumps(value)) for value in fields.values() if isinstance(value, dict))
    if size_bytes > MAX_MAPS_BYTES:
        raise InvalidInput("labels", f"and limits must have at most {MAX_MAPS_BYTES} bytes together, not {size_bytes}")
