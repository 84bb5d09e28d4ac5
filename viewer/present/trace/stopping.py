"""Who asked a run to stop, and what came of it (SPEC D3)."""

from collections.abc import Iterable
from dataclasses import dataclass

from ledger.records import RecordedEvent, RunDetail
from ledger.words.codes import cancel
from viewer.present.sentence import Part, Sentence, sentence
from viewer.words import gettext as _


@dataclass(frozen=True, slots=True)
class StopRequest:
    """The first request, of which there is at most one that counts."""

    seq: int
    at_us: int
    reason: str
    actor: str | None


def stop_request(events: Iterable[RecordedEvent]) -> StopRequest | None:
    """The request among these events; a long run's last ones hold it while it is waited for."""
    for event in events:
        if event.type == "cancellation.requested":
            return StopRequest(event.seq, event.occurred_us, str(event.fields["reason"]), event.fields.get("actor"))
    return None


def told(asked: StopRequest | None, run: RunDetail) -> Sentence:
    """Who wanted it to stop, where somebody did; told apart from what stopped it."""
    if asked is None:
        return []
    who = Part(asked.actor, code=True) if asked.actor else _("someone who is not named")
    status = run.summary.status
    if status == "RUNNING":
        return sentence(_("It was asked to stop by %(who)s; its process has not said yet that it does."), who=who)
    if status == "CANCELLED" and (run.cancel_reason or asked.reason) == asked.reason:
        return sentence(_("It was asked by %(who)s."), who=who)
    if asked.reason == "USER_REQUESTED":
        return sentence(_("It had been asked to stop by %(who)s, which is not what ended it."), who=who)
    said = _("It had been asked to stop by %(who)s because %(why)s, which is not what ended it.")
    return sentence(said, who=who, why=cancel(asked.reason))
