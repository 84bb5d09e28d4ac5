"""Two events of one identity, the recorded and the crossed one: in what do they differ?

Times, ids that a run draws, and what exceptions say in words are not compared. Contents are compared by the recorded
digest, made anew with its salt; so also those are of which only the digest was kept, until they are erased.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness import events as e
from harness.budget.usage import DEADLINE
from harness.content import Content, SealedContent, content_digest
from harness.events import Event
from harness.live.run import LiveRun
from harness.recording import Recording
from harness.replay.outcome import Difference, Kind
from harness.replay.record import Record

NEVER = {
    "event_id",
    "occurred_us",
    "elapsed_us",
    "duration_us",
    "first_output_us",
    "traceparent",
    "output_digest",
    "error_digest",
    "error_bytes",
    "error_stored",
    "error_redaction",
}
"""Fields that say when, or repeat what came from the record."""
MEASURED = {"used", "limit", "amount"}
"""Figures of a deadline that passed: microseconds."""
DRAWN = {"attempt_id", "parent_attempt_id", "scope_id", "parent_scope_id"}
"""Ids in the order in which a run happens to draw them."""
ANSWER = "answer/run/1/1"
"""Where a run gives its one answer."""
CONTENTS = {"input_digest", "query_digest", "answer_digest"}


class Compared:
    """What is known of the run that is executed again, beside its events."""

    def __init__(self, recording: Recording) -> None:
        self.given: dict[tuple[str, str], Content] = {}
        """What was given at a boundary, by that and the field that names it."""
        self.drawn: dict[str, str] = {}
        """The recorded id, by the one that was drawn again for the same."""
        self._again: dict[str, str] = {}
        """The other way round."""
        self.uncompared: dict[str, None] = {}
        """Boundaries whose content cannot be compared."""
        self._recording = recording
        self._recorded: dict[str, Content] = {}

    def note_content(self, sealed: SealedContent) -> None:
        """Remember what was recorded again of a content; events name it by its new digest."""
        if sealed.data is not None:
            self._recorded[sealed.digest] = Content(sealed.data, sealed.media_type)

    def drawn_again(self, recorded: e.Event, live: LiveRun) -> e.RunEvent:
        """A recorded event with ids that are free in the run, for what is taken over from the record."""
        assert isinstance(recorded, e.RunEvent), "it is an event of a run"
        ids: dict[str, str] = {}
        for name in DRAWN & type(recorded).model_fields.keys():
            if (theirs := getattr(recorded, name)) is not None:
                if theirs not in self._again:
                    mine = live.next_attempt_id() if name.endswith("attempt_id") else live.next_scope_id()
                    self._note(mine, theirs)
                ids[name] = self._again[theirs]
        return recorded.model_copy(update=ids)

    def answers(self, record: Record) -> tuple[Difference, ...]:
        """The recorded answer beside the one that is given."""
        answered = record.only(e.AnswerRecorded, ANSWER)
        digest = None if answered is None else answered.answer_digest
        given = self.given.get((ANSWER, "answer_digest"))
        return (Difference("answer", self._told(digest), _text(given)),)

    def inputs(self, boundaries: Iterable[str]) -> tuple[Difference, ...]:
        """What is given at boundaries that are not on record, and at those within them."""
        paths = tuple(boundaries)
        within = tuple(f"{path}/" for path in paths)
        given = {at: content for (at, _), content in self.given.items() if at in paths or at.startswith(within)}
        return tuple(Difference(f"input of {at}", None, _text(content)) for at, content in given.items())

    def note_ids(self, recorded: Event, crossed: Event) -> None:
        """Learn which ids stand for the same, from events that draw them."""
        for name in ("attempt_id", "scope_id"):
            mine, theirs = getattr(crossed, name, None), getattr(recorded, name, None)
            if isinstance(crossed, e.AttemptStarted | e.ScopeOpened) and mine is not None and theirs is not None:
                self._note(mine, theirs)

    def _note(self, mine: str, theirs: str) -> None:
        self.drawn.setdefault(mine, theirs)
        self._again.setdefault(theirs, mine)

    def differences(self, recorded: Event, crossed: Event) -> tuple[Difference, ...]:
        """Everything in which the two are not the same."""
        found = {each.name: each for each in self._differences(recorded, crossed)}
        for name in CONTENTS:
            # Where the content is shown, its size says nothing more.
            if (content := name.removesuffix("_digest")) in found:
                found.pop(f"{content}_bytes", None)
        return tuple(found[name] for name in sorted(found))

    def _differences(self, recorded: Event, crossed: Event) -> Iterator[Difference]:
        passed_over = NEVER | (MEASURED if getattr(crossed, "resource", None) == DEADLINE else set())
        for name in type(recorded).model_fields.keys() - passed_over:
            mine, theirs = getattr(crossed, name), getattr(recorded, name)
            if name in CONTENTS:
                yield from self._content(name, recorded, theirs, mine)
            elif name in DRAWN:
                if (mine is None) != (theirs is None) or self.drawn.get(mine or "", mine) != theirs:
                    yield Difference(name, theirs, mine)
            elif isinstance(recorded, e.ScopeOpened) and name == "timeout_us":
                if (mine is None) != (theirs is None) and not self._is_until_the_end(recorded, mine):
                    yield Difference(name, theirs, mine)
            elif mine != theirs:
                yield Difference(name, theirs, mine)

    def _is_until_the_end(self, opened: e.ScopeOpened, timeout_us: int | None) -> bool:
        """Whether a scope without a deadline of its own had none because the run's comes before that time-out."""
        left_us = self._recording.started.timeout_us - (opened.elapsed_us or 0)
        return timeout_us is not None and timeout_us >= left_us

    def _content(self, name: str, recorded: Event, theirs: str | None, mine: str | None) -> Iterator[Difference]:
        boundary = recorded.boundary if isinstance(recorded, e.BoundaryEvent) else recorded.type
        given = self.given.get((boundary, name)) or self._recorded.get(mine or "")
        if theirs is None or mine is None:
            if theirs != mine:
                yield Difference(name, self._told(theirs), _text(given))
            return
        kept = self._recording.contents.get(theirs)
        if kept is None or kept.salt is None or given is None:
            self.uncompared[boundary] = None
        elif content_digest(kept.salt, given) != theirs:
            yield Difference(name.removesuffix("_digest"), self._told(theirs), _text(given))

    def _told(self, digest: str | None) -> str | None:
        """The recorded side of a content that differs."""
        text = self._recording.text(digest)
        return f"(only its digest is on record: {digest})" if text is None and digest is not None else text


def kind_of(crossed: Event, differences: tuple[Difference, ...]) -> Kind:
    """What to call it that events of one identity differ."""
    if isinstance(crossed, e.RunStarted):
        return Kind.BEGINNING
    if isinstance(crossed, e.AttemptStarted | e.PolicyDecided) and any(
        each.name.startswith("input") for each in differences
    ):
        return Kind.ARGUMENTS
    if isinstance(crossed, e.GraphTransitioned | e.GraphFinished):
        return Kind.TRANSITION
    if isinstance(crossed, e.AnswerRecorded) or _is_for_an_answer(crossed):
        return Kind.ANSWER
    return Kind.OUTCOME if isinstance(crossed, e.RunTerminated) else Kind.EVENT


def _is_for_an_answer(crossed: Event) -> bool:
    return isinstance(crossed, e.ReservationGranted) and (crossed.kind, crossed.name) == ("capacity", "answer")


def _text(content: Content | None) -> str | None:
    return None if content is None else content.data.decode("utf-8", "replace")
