"""Who asked a run to stop, and what came of it (SPEC D3)."""

from collections.abc import Iterable
from dataclasses import dataclass

from ledger.records import RecordedEvent, RunDetail
from ledger.words.codes import cancel
from viewer.present.sentence import Part, Sentence


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
    by: Sentence = [" by ", Part(asked.actor, code=True)] if asked.actor else [" by someone who is not named"]
    status = run.summary.status
    if status == "RUNNING":
        return ["It was asked to stop", *by, "; its process has not said yet that it does."]
    if status == "CANCELLED" and (run.cancel_reason or asked.reason) == asked.reason:
        return ["It was asked", *by, "."]
    why = f" because {cancel(asked.reason)}" if asked.reason != "USER_REQUESTED" else ""
    return ["It had been asked to stop", *by, f"{why}, which is not what ended it."]
