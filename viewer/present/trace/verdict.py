"""The verdict in words: how a run ended, why, where it was, and what it changed. Five seconds are enough."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.reading.parts import WorkLine
from ledger.records import RunDetail, RunTrace, ToolInvocation
from ledger.words.codes import amount as amount_of
from ledger.words.codes import cancel, noun, plain, scope_of
from ledger.words.format import count, duration, nth, size, spelled
from ledger.words.places import levels
from ledger.words.text import shorten
from viewer.present.sentence import Moment, Part, Sentence, joined, sentence
from viewer.present.timeline.scopes import Scope
from viewer.present.trace.graph import Transition
from viewer.present.trace.incidents import incidents
from viewer.present.trace.stopping import StopRequest, told
from viewer.words import N_, found_for, ngettext
from viewer.words import gettext as _

TONES = {"SUCCESS": "good", "RUNNING": "live", "CANCELLED": "quiet"}
"""Outcome to tone; every other outcome is a failure."""
_LABELS = {
    "SUCCESS": N_("Success"),
    "RUNNING": N_("Running"),
    "CANCELLED": N_("Cancelled"),
    "FAILED": N_("Failed"),
    "TIMED_OUT": N_("Timed out"),
    "BUDGET_EXHAUSTED": N_("Budget exhausted"),
    "ACTIVE": N_("Active"),
    "EXPIRED": N_("Expired"),
}
"""Outcomes of runs and states of sessions; any other code is shown in plain words."""
_ERROR_CHARS_MAX = 160


@dataclass(frozen=True, slots=True)
class Verdict:
    """The run in one breath."""

    pill: str
    tone: str
    """good, live, quiet, warn or bad."""
    parts: tuple[Part | Moment, ...]


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
    sentences: list[Sentence | None] = [
        _running_then(run, duration(elapsed_us))
        if is_past and status == "RUNNING"
        else _ending(run, duration(elapsed_us), trace.answer is not None),
        told(asked, run),
        *_circumstances(trace, transitions),
        *incidents(run, scopes),
    ]
    tools = trace.tool_invocations if works is None else [work for work in works if work.kind == "tool"]
    sentences.append(changes(tools, running=status == "RUNNING"))
    is_doubtful = run.degraded or "hidden_retries" in run.incidents
    tone = "warn" if is_doubtful and status == "SUCCESS" else TONES.get(status, "bad")
    return Verdict(pill(status), tone, joined(sentences))


def pill(status: str) -> str:
    """An outcome as its label."""
    return _(_LABELS[status]) if status in _LABELS else plain(status).capitalize()


def _running_then(run: RunDetail, lasted: str) -> Sentence:
    limit, used = run.limits.get("model_calls"), run.usage.get("model_calls", 0)
    if limit is None:
        said = found_for(
            "Running, %(time)s after the start; %(calls)s model call used.",
            "Running, %(time)s after the start; %(calls)s model calls used.",
            used,
        )
        return sentence(said, time=lasted, calls=spelled(used))
    said = found_for(
        "Running, %(time)s after the start; %(used)s of %(limit)s model call used.",
        "Running, %(time)s after the start; %(used)s of %(limit)s model calls used.",
        limit,
    )
    return sentence(said, time=lasted, used=count(used), limit=count(limit))


def _ending(run: RunDetail, lasted: str, answered: bool) -> Sentence:
    status, reason = run.summary.status, run.outcome_reason
    if status == "RUNNING":
        return [_("Still running; its last event came %(time)s after the start.", time=lasted)]
    if status == "SUCCESS":
        if run.degraded:
            return sentence(_("Answered after %(time)s, but degraded: %(why)s"), time=lasted, why=_why_degraded(run))
        if answered:
            return [_("Answered after %(time)s.", time=lasted)]
        return [_("Finished after %(time)s.", time=lasted)]
    if status == "BUDGET_EXHAUSTED":
        why = _over(run.refused, reason, run.currency)
        return sentence(_("Stopped after %(time)s: %(why)s"), time=lasted, why=why)
    if status == "TIMED_OUT":
        return [_("Stopped after %(time)s: its time of %(limit)s was up.", time=lasted, limit=duration(run.timeout_us))]
    if status == "CANCELLED":
        why_cancelled = cancel(run.cancel_reason or reason or "unknown")
        return [_("Cancelled after %(time)s because %(why)s.", time=lasted, why=why_cancelled)]
    return _failure(run, lasted)


def _why_degraded(run: RunDetail) -> Sentence:
    """What the graph gave as its reason, where it gave one."""
    graph = run.orchestration_trace or {}
    node, reason = graph.get("finalNode"), graph.get("terminationReason")
    if not node or not reason:
        return [_("the answer is not what a full course would have given.")]
    said = _("the answer is not what a full course would have given; the graph finished in %(node)s (%(reason)s).")
    return sentence(said, node=Part(str(node), code=True), reason=plain(str(reason)))


def _failure(run: RunDetail, lasted: str) -> Sentence:
    if run.outcome_reason == "HARNESS_LOST":
        return [_("Its process died; what is known of it ends %(time)s after the start.", time=lasted)]
    if run.outcome_reason == "LEDGER_UNAVAILABLE":
        said = _("Stopped after %(time)s: the ledger could not be written, so no further work was let through.")
        return sentence(said, time=lasted)
    if run.outcome_reason == "HIDDEN_RETRY":
        return [_("Stopped after %(time)s: a client within an attempt retried on its own.", time=lasted)]
    error = run.error.text if run.error is not None else None
    why: Part | str = ""
    if error and error.strip():
        why = Part(shorten(error, _ERROR_CHARS_MAX), code=True)
    elif run.outcome_reason:
        why = plain(run.outcome_reason)
    if not why:
        return [_("Failed after %(time)s.", time=lasted)]
    return sentence(_("Failed after %(time)s: %(why)s."), time=lasted, why=why)


def _over(refused: Mapping[str, Any] | None, reason: str | None, currency: str | None) -> Sentence:
    if refused is None or not isinstance(refused.get("limit"), int):
        if reason:
            return [_("its budget was used up (%(reason)s).", reason=plain(reason))]
        return [_("its budget was used up.")]
    key, used, limit = str(refused.get("resource")), int(refused.get("used") or 0), int(refused["limit"])
    amount = refused.get("amount")
    if key == "run_bytes":
        if not amount:
            return [_("its content would have passed its limit of %(limit)s.", limit=size(limit))]
        more = size(int(amount))
        return [_("%(size)s more content would have passed its limit of %(limit)s.", size=more, limit=size(limit))]
    if key == "cost_micros" or key.endswith("_tokens"):
        return _over_what_is_metered(key, used, limit, None if amount is None else int(amount), currency)
    if key.startswith("repeat:"):
        said = _("%(nth)s %(tool)s call with the same arguments would have passed its limit of %(limit)s.")
        name = Part(key.removeprefix("repeat:"), code=True)
        return sentence(said, nth=nth(used + 1), number=count(used + 1), tool=name, limit=str(limit))
    return _over_calls(key, used, limit, 1 if amount is None else int(amount))


def _over_what_is_metered(key: str, used: int, limit: int, amount: int | None, currency: str | None) -> Sentence:
    """Tokens or cost."""
    facts = {
        "used": amount_of(key, used),
        "more": amount_of(key, amount or 0),
        "limit": amount_of(key, limit),
        "unit": (currency or _("of cost")) if key == "cost_micros" else noun(key),
    }
    if key == "cost_micros":
        was_used = _("%(used)s %(unit)s were used, which is over its limit of %(limit)s %(unit)s.")
        would_pass = _("%(more)s %(unit)s more would have passed its limit of %(limit)s %(unit)s.")
    else:
        was_used = _("%(used)s %(unit)s were used, which is over its limit of %(limit)s.")
        would_pass = _("%(more)s more %(unit)s would have passed its limit of %(limit)s.")
    return sentence(was_used if amount is None else would_pass, **facts)


def _over_calls(key: str, used: int, limit: int, more: int) -> Sentence:
    """Calls of a model or of tools, or units of a resource that has no words of its own."""
    facts = {"nth": nth(used + 1), "number": count(used + 1), "more": count(more), "limit": count(limit)}
    if key.startswith("tool:"):
        one = _("%(nth)s %(tool)s call would have passed its limit of %(limit)s.")
        many = _("%(more)s more %(tool)s calls would have passed its limit of %(limit)s.")
        return sentence(many if more > 1 else one, tool=Part(key.removeprefix("tool:"), code=True), **facts)
    if key == "model_calls":
        one = _("%(nth)s model call would have passed its limit of %(limit)s.")
        many = _("%(more)s more model calls would have passed its limit of %(limit)s.")
    elif key == "tool_calls":
        one = _("%(nth)s tool call would have passed its limit of %(limit)s.")
        many = _("%(more)s more tool calls would have passed its limit of %(limit)s.")
    else:
        one = _("%(nth)s unit of %(resource)s would have passed its limit of %(limit)s.")
        many = _("%(more)s more units of %(resource)s would have passed its limit of %(limit)s.")
    return sentence(many if more > 1 else one, resource=plain(key), **facts)


def _circumstances(trace: RunTrace, transitions: Sequence[Transition]) -> Iterable[Sentence]:
    run = trace.run
    status = run.summary.status
    repairs = sum(step.cause == "REPAIR" for step in transitions)
    node = _last_node(run, transitions)
    if node is not None and status != "SUCCESS":
        yield _where(Part(node, code=True), repairs, is_running=status == "RUNNING")
    elif repairs:
        said = found_for("It needed %(num)s evidence repair.", "It needed %(num)s evidence repairs.", repairs)
        yield sentence(said, num=spelled(repairs))
    if trace.answer is None and status != "RUNNING":
        yield [_("No answer was given.")]


def _where(node: Part, repairs: int, *, is_running: bool) -> Sentence:
    """The node that it is, or was, in."""
    if not repairs:
        return sentence(_("It is in %(node)s.") if is_running else _("It was in %(node)s."), node=node)
    if is_running:
        said = found_for(
            "It is in %(node)s after %(num)s evidence repair.",
            "It is in %(node)s after %(num)s evidence repairs.",
            repairs,
        )
    else:
        said = found_for(
            "It was in %(node)s after %(num)s evidence repair.",
            "It was in %(node)s after %(num)s evidence repairs.",
            repairs,
        )
    return sentence(said, node=node, num=spelled(repairs))


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
    unknown = ngettext(
        "%(num)s tool call did not declare whether it writes.",
        "%(num)s tool calls did not declare whether they write.",
        undeclared,
        num=spelled(undeclared).capitalize(),
    )
    if writes:
        return [*_writes(writes, running), f" {unknown}"] if undeclared else _writes(writes, running)
    if undeclared:
        return [unknown]
    if running:
        return [_("It changed nothing so far: every tool call was declared a read.")]
    return [_("It changed nothing: every tool call was declared a read.")]


def _writes(writes: Sequence[ToolInvocation | WorkLine], running: bool) -> Sentence:
    names = Counter(tool.tool_name for tool in writes)
    named: Sentence = []
    for index, (name, times) in enumerate(list(names.items())[:4]):
        number = f" ({count(times)})" if times > 1 and len(names) > 1 else ""
        named += [", " if index else "", Part(name, code=True), number]
    if len(names) > 4:
        named = sentence(_("%(names)s and %(number)s more tools"), names=named, number=str(len(names) - 4))
    unfinished = sum(tool.status not in ("SUCCESS", "RUNNING") for tool in writes)
    if unfinished:
        failed = _("%(names)s; %(number)s of them did not succeed")
        named = sentence(failed, names=named, number=str(unfinished))
    if running:
        said = found_for(
            "It made %(num)s write so far: %(names)s.", "It made %(num)s writes so far: %(names)s.", len(writes)
        )
    else:
        said = found_for("It made %(num)s write: %(names)s.", "It made %(num)s writes: %(names)s.", len(writes))
    return sentence(said, num=spelled(len(writes)), names=named)
