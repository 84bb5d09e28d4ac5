"""What an erasure says of itself: in the ledger's own stream that it was decided and finished, in runs what it took."""

from __future__ import annotations

from harness.events import ContentErased, ErasureFinished, ErasureStage
from harness.journal import Submission
from ledger.append.deciding import Draft
from ledger.append.prepared import prepare
from ledger.append.unfolded import append, system_event
from ledger.erasing.erasing import Order, run_id_of


def tell_decision(order: Order, now_us: int, draft: Draft) -> None:
    """Say that it was decided."""
    model, fields = order.decision()
    append(draft, system_event(model, draft.setting.new_event_id(), now_us, **fields), seq_expected=order.seq_expected)


def tell_run(
    order: Order, stage: ErasureStage, figures: tuple[int, int], stream_id: str, now_us: int, draft: Draft
) -> int:
    """Say in the run what was taken of it, and how far that has come; where. `RunUnreadable` if it cannot be told."""
    run_id = run_id_of(stream_id)
    head = draft.head(run_id)
    assert head is not None, "a stream is never deleted"
    event = ContentErased(
        event_id=draft.setting.new_event_id(),
        stream_id=stream_id,
        session_id=head.session_id,
        run_id=run_id,
        occurred_us=now_us,
        **order.carried_out(stage, *figures),
    )
    return draft.append(prepare(Submission(head.session_id, run_id, (event,)))).last_seq


def tell_end(order: Order, figures: tuple[int, int, int], now_us: int, draft: Draft) -> None:
    """Say that all of it is done."""
    fields = dict(zip(("run_count", "content_count", "size_bytes"), figures, strict=True))
    event_id = draft.setting.new_event_id()
    append(draft, system_event(ErasureFinished, event_id, now_us, erasure_id=order.erasure_id, stage="FILE", **fields))
