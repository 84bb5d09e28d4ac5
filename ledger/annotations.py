"""What people and evaluators say of a run, appended to it by the ledger itself, mostly after its end (SPEC R6, D23)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from harness.content import Content, SealedContent, content_digest, encode_content
from harness.errors import InvalidInput
from harness.events import CaseRecorded, EvaluationRecorded, FeedbackRecorded, RunEvent
from harness.events.base import MAX_MAP_KEYS, MAX_SAFE_INTEGER
from harness.ids import IdSource, check_code, check_name, run_stream
from harness.journal import Submission
from ledger.append.deciding import Draft, RunHead
from ledger.append.prepared import prepare
from ledger.bytes import case_id_of
from ledger.errors import RunNotFound, TooLarge
from ledger.sizes import MAX_TEXT_BYTES

MAX_EVALUATORS = 64
"""Of one run; an evaluator may judge it again any number of times."""

E = TypeVar("E", bound=RunEvent)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A judgement by a named evaluator; a later one of the same evaluator replaces it."""

    evaluator: str
    verdict: str
    usage: Mapping[str, int] | None
    rationale: SealedContent | None

    def record(self, draft: Draft, session_id: str, run_id: str, now_us: int) -> None:
        """Append it; `RunNotFound` if there is no such run in that session."""
        head = head_of(draft, session_id, run_id)
        evaluations = head.projection.evaluations
        if self.evaluator not in evaluations and len(evaluations) >= MAX_EVALUATORS:
            raise InvalidInput("evaluator", f"would be one more than {MAX_EVALUATORS} of this run")
        event = event_of(
            EvaluationRecorded,
            draft,
            head,
            now_us,
            evaluator=self.evaluator,
            verdict=self.verdict,
            usage=self.usage,
            rationale_digest=self.rationale.digest if self.rationale else None,
        )
        append_to(draft, head, (event,), self.rationale)


@dataclass(frozen=True, slots=True)
class Feedback:
    """A person's feedback; useful feedback makes the run a case, or finds that it is one."""

    useful: bool
    actor: str | None
    comment: SealedContent | None
    verdict: str
    """The gatekeeper's on the case."""

    def record(self, draft: Draft, session_id: str, run_id: str, now_us: int) -> str | None:
        """Append it and return the id of the run's case, if it has one; `RunNotFound` as above."""
        head = head_of(draft, session_id, run_id)
        digest = self.comment.digest if self.comment else None
        events: list[RunEvent] = [
            event_of(FeedbackRecorded, draft, head, now_us, useful=self.useful, actor=self.actor, comment_digest=digest)
        ]
        case_id = head.projection.case.case_id if head.projection.case else None
        if self.useful and case_id is None:
            case_id = case_id_of(run_id)
            events.append(event_of(CaseRecorded, draft, head, now_us, case_id=case_id, verdict=self.verdict))
        append_to(draft, head, tuple(events), self.comment)
        return case_id


def evaluation(
    ids: IdSource, *, evaluator: str, verdict: str, usage: Mapping[str, int] | None, rationale: str | None
) -> Evaluation:
    """A judgement that may be recorded; `InvalidInput` for names that are none."""
    check_code("evaluator", evaluator)
    check_code("verdict", verdict)
    return Evaluation(evaluator, verdict, _check_counts(usage), _seal(ids, "the rationale", rationale))


def feedback(ids: IdSource, *, useful: bool, actor: str | None, comment: str | None, verdict: str) -> Feedback:
    """Feedback that may be recorded; `InvalidInput` for what is none."""
    if not isinstance(useful, bool):
        raise InvalidInput("useful", f"must be true or false, not {useful!r}")
    check_code("verdict", verdict)
    actor = None if actor is None else check_name("actor", actor)
    return Feedback(useful, actor, _seal(ids, "the comment", comment), verdict)


def _check_counts(usage: Mapping[str, int] | None) -> dict[str, int] | None:
    counts = dict(usage or {})
    if len(counts) > MAX_MAP_KEYS:
        raise InvalidInput("usage", f"must have at most {MAX_MAP_KEYS} figures, not {len(counts)}")
    for name, count in counts.items():
        check_name("usage", name)
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MAX_SAFE_INTEGER:
            raise InvalidInput("usage", f"must hold whole numbers from 0 to {MAX_SAFE_INTEGER}, not {count!r}")
    return counts or None


def head_of(draft: Draft, session_id: str, run_id: str) -> RunHead:
    """Where the run stands; `RunNotFound` if there is no such run in that session."""
    head = draft.head(run_id)
    if head is None or head.session_id != session_id:
        raise RunNotFound(session_id, run_id)
    return head


def event_of(model: type[E], draft: Draft, head: RunHead, now_us: int, **fields: Any) -> E:
    """An event of the run that the ledger itself writes."""
    run_id = head.projection.state.run_id
    stamp: dict[str, Any] = {
        "event_id": draft.setting.new_event_id(),
        "stream_id": run_stream(run_id),
        "occurred_us": now_us,
    }
    return model(session_id=head.session_id, run_id=run_id, **stamp, **fields)


def append_to(draft: Draft, head: RunHead, events: tuple[RunEvent, ...], content: SealedContent | None = None) -> None:
    """Append them to the run."""
    contents = (content,) if content is not None else ()
    draft.append(prepare(Submission(head.session_id, head.projection.state.run_id, events, contents)))


def _seal(ids: IdSource, what: str, text: str | None) -> SealedContent | None:
    if text is None:
        return None
    content: Content = encode_content(text)
    size_bytes = len(content.data)
    if size_bytes > MAX_TEXT_BYTES:
        raise TooLarge(what, size_bytes=size_bytes, limit_bytes=MAX_TEXT_BYTES)
    salt = ids.salt()
    return SealedContent(content_digest(salt, content), salt, size_bytes, content.media_type, content.data)
