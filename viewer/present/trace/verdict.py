"""The verdict in words: how a run ended, why, where it was, and what it changed. Five seconds are enough."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.reading.parts import WorkLine
from ledger.records import RunDetail, RunTrace, ToolInvocation
from ledger.words.codes import amount as amount_of
from ledger.words.codes import cancel, noun, plain, scope_of
from ledger.words.format import count, duration, nth, plural, size, some
from ledger.words.places import levels
from ledger.words.text import shorten
from viewer.present.sentence import Part, Sentence
from viewer.present.timeline.scopes import Scope
from viewer.present.trace.graph import Transition
from viewer.present.trace.incidents import incidents
from viewer.present.trace.stopping import StopRequest, told

TONES = {"SUCCESS": "good", "RUNNING": "live", "CANCELLED": "quiet"}
"""Outcome to tone; every other outcome is a failure."""
_ERROR_CHARS_MAX = 160


@dataclass(frozen=True, slots=True)
class Verdict:
    """The run in one breath."""

    pill: str
    tone: str
    """good, live, quiet, warn or bad."""
    parts: tuple[Part, ...]


def verdict(
    trace: RunTrace,
    transitions: Sequence[Transition],
    elapsed_us: int,
    scopes: Iterable[Scope] = (),
    asked: StopRequest | None = None,
    *,
    works: Sequence[WorkLine] | None = None,
    is_past: bool = False,
) -> Verdict:
    """Outcome and sentences for a run that lasted, or has lasted so far, `elapsed_us`.

    `works` are all its steps and invocations, where the trace has only some. `is_past` where this is not how it stands
    now.
    """
    run = trace.run
    status = run.summary.status
    sentences: list[Sentence] = [
        _running_then(run, duration(elapsed_us))
        if is_past and status == "RUNNING"
        else _ending(run, duration(elapsed_us), trace.answer is not None),
        told(asked, run),
        *_circumstances(trace, transitions),
        *incidents(run, scopes),
    ]
    tools = trace.tool_invocations if works is None else [work for work in works if work.kind == "tool"]
    sentences.append(changes(tools, running=status == "RUNNING"))
    parts: list[Part] = []
    for sentence in filter(None, sentences):
        parts.append(Part(" ")) if parts else None
        parts.extend(Part(each) if isinstance(each, str) else each for each in sentence)
    is_doubtful = run.degraded or "hidden_retries" in run.incidents
    tone = "warn" if is_doubtful and status == "SUCCESS" else TONES.get(status, "bad")
    return Verdict(pill(status), tone, tuple(parts))


def pill(status: str) -> str:
    """An outcome as its label."""
    return plain(status).capitalize()


def _running_then(run: RunDetail, lasted: str) -> Sentence:
    limit, used = run.limits.get("model_calls"), run.usage.get("model_calls", 0)
    calls = f"{count(used)} of {plural(limit, 'model call')}" if limit is not None else some(used, "model call")
    return [f"Running, {lasted} after the start; {calls} used."]


def _ending(run: RunDetail, lasted: str, answered: bool) -> Sentence:
    status, reason = run.summary.status, run.outcome_reason
    if status == "RUNNING":
        return [f"Still running; its last event came {lasted} after the start."]
    if status == "SUCCESS":
        if run.degraded:
            return [f"Answered after {lasted}, but degraded: ", *_why_degraded(run)]
        return [f"{'Answered' if answered else 'Finished'} after {lasted}."]
    if status == "BUDGET_EXHAUSTED":
        return [f"Stopped after {lasted}: ", *_over(run.refused, reason, run.currency)]
    if status == "TIMED_OUT":
        return [f"Stopped after {lasted}: its time of {duration(run.timeout_us)} was up."]
    if status == "CANCELLED":
        return [f"Cancelled after {lasted} because {cancel(run.cancel_reason or reason or 'unknown')}."]
    return _failure(run, lasted)


def _why_degraded(run: RunDetail) -> Sentence:
    """What the graph gave as its reason, where it gave one."""
    graph = run.orchestration_trace or {}
    node, reason = graph.get("finalNode"), graph.get("terminationReason")
    said: Sentence = ["the answer is not what a full course would have given"]
    if node and reason:
        return [*said, "; the graph finished in ", Part(str(node), code=True), f" ({plain(str(reason))})."]
    return [*said, "."]


def _failure(run: RunDetail, lasted: str) -> Sentence:
    if run.outcome_reason == "HARNESS_LOST":
        return [f"Its process died; what is known of it ends {lasted} after the start."]
    if run.outcome_reason == "LEDGER_UNAVAILABLE":
        return [f"Stopped after {lasted}: the ledger could not be written, so no further work was let through."]
    if run.outcome_reason == "HIDDEN_RETRY":
        return [f"Stopped after {lasted}: a client within an attempt retried on its own."]
    head = f"Failed after {lasted}"
    said = run.error.text if run.error is not None else None
    if said and said.strip():
        return [f"{head}: ", Part(shorten(said, _ERROR_CHARS_MAX), code=True), "."]
    return [f"{head}: {plain(run.outcome_reason)}." if run.outcome_reason else f"{head}."]


def _over(refused: Mapping[str, Any] | None, reason: str | None, currency: str | None) -> Sentence:
    if refused is None or not isinstance(refused.get("limit"), int):
        return [f"its budget was used up ({plain(reason)})." if reason else "its budget was used up."]
    key, used, limit = str(refused.get("resource")), int(refused.get("used") or 0), int(refused["limit"])
    amount = refused.get("amount")
    if key == "run_bytes":
        more = f"{size(int(amount))} more content" if amount else "its content"
        return [f"{more} would have passed its limit of {size(limit)}."]
    if key.endswith("_tokens") or key == "cost_micros":
        of = f" {currency or 'of cost'}" if key == "cost_micros" else ""
        what = of or f" {noun(key)}"
        if amount is None:
            return [f"{amount_of(key, used)}{what} were used, which is over its limit of {amount_of(key, limit)}{of}."]
        more = f"{amount_of(key, int(amount))}{of} more{'' if of else what}"
        return [f"{more} would have passed its limit of {amount_of(key, limit)}{of}."]
    if key.startswith("repeat:"):
        name = Part(key.removeprefix("repeat:"), code=True)
        return [f"{nth(used + 1)} ", name, f" call with the same arguments would have passed its limit of {limit}."]
    tool, call = _call(key)
    if amount is not None and int(amount) > 1:
        return [f"{count(int(amount))} more ", *tool, f"{call}s would have passed its limit of {count(limit)}."]
    return [f"{nth(used + 1)} ", *tool, f"{call} would have passed its limit of {count(limit)}."]


def _call(key: str) -> tuple[Sentence, str]:
    if key.startswith("tool:"):
        return [Part(key.removeprefix("tool:"), code=True), " "], "call"
    nouns = {"model_calls": "model call", "tool_calls": "tool call"}
    return [], nouns.get(key, f"unit of {plain(key)}")


def _circumstances(trace: RunTrace, transitions: Sequence[Transition]) -> Iterable[Sentence]:
    run = trace.run
    status = run.summary.status
    repairs = sum(step.cause == "REPAIR" for step in transitions)
    after = f" after {some(repairs, 'evidence repair')}" if repairs else ""
    node = _last_node(run, transitions)
    if node is not None and status not in ("SUCCESS", "RUNNING"):
        yield ["It was in ", Part(node, code=True), f"{after}."]
    elif node is not None and status == "RUNNING":
        yield ["It is in ", Part(node, code=True), f"{after}."]
    elif repairs:
        yield [f"It needed {some(repairs, 'evidence repair')}."]
    if trace.answer is None and status != "RUNNING":
        yield ["No answer was given."]


def _last_node(run: RunDetail, transitions: Sequence[Transition]) -> str | None:
    if transitions:
        return transitions[-1].target
    scope = levels(scope_of(str((run.refused or {}).get("boundary") or "")))
    return scope[0].label if scope else None


def changes(tools: Sequence[ToolInvocation | WorkLine], *, running: bool = False) -> Sentence:
    """What the run changed, by what its tools declare: a write counts once it was started, whatever came of it."""
    if not tools:
        return []
    writes = [tool for tool in tools if tool.effect == "write"]
    undeclared = sum(tool.effect not in ("read", "write") for tool in tools)
    so_far = " so far" if running else ""
    they = "they write" if undeclared > 1 else "it writes"
    unknown = f"{some(undeclared, 'tool call').capitalize()} did not declare whether {they}." if undeclared else ""
    if not writes:
        return [unknown] if unknown else [f"It changed nothing{so_far}: every tool call was declared a read."]
    names = Counter(tool.tool_name for tool in writes)
    sentence: Sentence = [f"It made {some(len(writes), 'write')}{so_far}: "]
    for index, (name, times) in enumerate(list(names.items())[:4]):
        number = f" ({count(times)})" if times > 1 and len(names) > 1 else ""
        sentence += [", " if index else "", Part(name, code=True), number]
    sentence.append(f" and {len(names) - 4} more tools" if len(names) > 4 else "")
    unfinished = sum(tool.status not in ("SUCCESS", "RUNNING") for tool in writes)
    sentence.append(f"; {unfinished} of them did not succeed." if unfinished else ".")
    return [*sentence, f" {unknown}"] if unknown else sentence
