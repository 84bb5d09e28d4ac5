"""What became of attempts, in words: each attempt of a step, a guard's, and what was not let through."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ledger.records import RecordedEvent
from ledger.words.codes import amount, failure, noun, plain
from ledger.words.format import count, duration
from viewer.words import N_, ngettext
from viewer.words import gettext as _

ATTEMPTS_LISTED = 20
"""Of one step; further ones are counted."""


def how_ended(event: RecordedEvent) -> str:
    """How a guard's attempt ended."""
    fields = event.fields
    if event.type == "attempt.succeeded":
        return _("passed after %(time)s", time=duration(fields["duration_us"]))
    if event.type == "attempt.failed":
        why = failure(str(fields["failure"]))
        return _("%(why)s after %(time)s", why=why, time=duration(fields["duration_us"]))
    return ""


def how_refused(event: RecordedEvent) -> str:
    """What was not executed, and which limit it would have passed."""
    fields = event.fields
    resource, own = str(fields["resource"]), f"tool:{fields['name']}"
    is_of_calls = resource.endswith("calls") or resource.startswith(("tool:", "repeat:"))
    if is_of_calls and fields["amount"] > 1:
        what = ngettext("%(num)s call not executed", "%(num)s calls not executed", int(fields["amount"]))
    else:
        what = _("not executed")
    facts = {"what": what, "limit": amount(resource, int(fields["limit"])), "resource": noun(resource)}
    if resource == own and "scope_id" in fields:
        return _("%(what)s: the limit of %(limit)s of its scope was reached", **facts)
    if resource == own:
        return _("%(what)s: the limit of %(limit)s was reached", **facts)
    if "scope_id" in fields:
        return _("%(what)s: the limit of %(limit)s of %(resource)s of its scope was reached", **facts)
    return _("%(what)s: the limit of %(limit)s of %(resource)s was reached", **facts)


def attempts_in_words(events: Sequence[RecordedEvent]) -> Iterator[str]:
    """Each attempt of a step: how it ended, after how long, and what came then."""
    lines: list[str] = []
    for event in events:
        fields = event.fields
        if event.type == "attempt.started":
            lines.append(_("attempt %(number)s of %(most)s", number=fields["attempt"], most=fields["max_attempts"]))
        elif event.type in _FURTHER:
            lines[-1] = _(_FURTHER[event.type], attempt=lines[-1], **_facts(fields))
    yield from lines[:ATTEMPTS_LISTED]
    if len(lines) > ATTEMPTS_LISTED:
        yield _("and %(number)s more", number=count(len(lines) - ATTEMPTS_LISTED))


def _facts(fields: Mapping[str, Any]) -> dict[str, str]:
    """Those of an attempt's event that are told, in words."""
    facts = {}
    if "failure" in fields:
        facts["why"] = failure(str(fields["failure"]))
    if "reason" in fields:
        facts["why"] = plain(str(fields["reason"]))
    us = fields.get("duration_us", fields.get("delay_us"))
    return facts if us is None else {**facts, "time": duration(us)}


_FURTHER = {
    "attempt.succeeded": N_("%(attempt)s: answered after %(time)s"),
    "attempt.failed": N_("%(attempt)s: %(why)s after %(time)s"),
    "attempt.abandoned": N_("%(attempt)s: abandoned (%(why)s)"),
    "retry.scheduled": N_("%(attempt)s; the next one was due in %(time)s"),
    "retry.refused": N_("%(attempt)s; no other one was made (%(why)s)"),
}
