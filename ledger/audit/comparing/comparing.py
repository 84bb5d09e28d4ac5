"""Two runs side by side: which boundaries they share, what is added, missing or different, and by how much.

Contents are compared by their bytes, since digests are salted for each run; of what cannot be read on one side, and has
the same size, nobody can tell.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from ledger.audit.comparing.aligning import align
from ledger.audit.comparing.crossings import Crossing, Crossings, Piece, piece_of
from ledger.records import ContentView, RecordedEvent, RunTrace
from ledger.words.codes import amount, noun, rank
from ledger.words.format import duration
from ledger.words.usage import COST
from ledger.words.usage import unknown_count as usage_unknown

PAGE_EVENTS = 500
BATCH_CONTENTS = 100
"""Contents of each run that are looked at together,"""
BATCH_BYTES = 8_000_000
"""and how large they are at most, but for one that is larger by itself."""

Keys = tuple[str, str]
"""Session and run."""
Sign = Literal["same", "different", "only_a", "only_b"]


class Difference(NamedTuple):
    """Something that both have, but not alike."""

    what: str
    a: str
    b: str


@dataclass(slots=True)
class Entry:
    """One boundary of either run, or one of each that were laid side by side."""

    a: Crossing | None
    b: Crossing | None
    differences: list[Difference] = field(default_factory=list)
    cannot_tell: list[str] = field(default_factory=list)
    """Contents of which it cannot be told whether they are alike."""

    @property
    def sign(self) -> Sign:
        """What became of the comparison."""
        if self.b is None:
            return "only_a"
        if self.a is None:
            return "only_b"
        return "different" if self.differences else "same"


class Delta(NamedTuple):
    """A figure of both runs."""

    name: str
    a: int | None
    b: int | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that was found."""

    a: RunTrace
    b: RunTrace
    differences: tuple[Difference, ...]
    """Of the runs as such: who ran what, within which limits, how it ended."""
    cannot_tell: tuple[str, ...]
    usage: tuple[Delta, ...]
    elapsed_us: Delta
    """Never alike, and no difference."""
    entries: tuple[Entry, ...]
    is_longest: bool
    """False where the runs differ so much that more may be in common than was laid side by side."""

    @property
    def is_same(self) -> bool:
        """Whether no difference was found."""
        return not self.differences and all(entry.sign == "same" for entry in self.entries)

    def count(self, sign: Sign) -> int:
        """How many boundaries are so."""
        return sum(entry.sign == sign for entry in self.entries)

    def is_told(self, usage: Delta) -> bool:
        """Whether it can be told how much more of it one of them used: all of it is known, and in one currency."""
        runs = self.a.run, self.b.run
        is_one = usage.name != COST or len({run.currency for run in runs if run.currency}) < 2
        return is_one and not any(usage_unknown(run, usage.name) for run in runs)

    @property
    def unknown_count(self) -> int:
        """Contents of which nobody can tell."""
        return len(self.cannot_tell) + sum(len(entry.cannot_tell) for entry in self.entries)


class Reader(Protocol):
    """The part of `ledger.LedgerReader` that a comparison uses."""

    async def overview(self, session_id: str, run_id: str) -> RunTrace:
        """The run without its steps and tools."""

    async def events(
        self, session_id: str, run_id: str, after_seq: int = ..., limit: int = ...
    ) -> Sequence[RecordedEvent]:
        """Its events in their order."""

    async def contents(self, session_id: str, run_id: str, digests: Iterable[str]) -> Mapping[str, ContentView]:
        """Those of its contents that have the digests."""


async def compare(reader: Reader, a: Keys, b: Keys) -> Comparison:
    """Compare two runs of a ledger; `RunNotFound`, or `TooManyCrossings` for one that is too long."""
    sides = [await _side(reader, keys) for keys in (a, b)]
    (trace_a, question_a, found_a), (trace_b, question_b, found_b) = sides
    # Of long runs that have little in common it takes a second or more.
    alignment = await asyncio.to_thread(align, [each.key for each in found_a], [each.key for each in found_b])
    entries = [
        Entry(None if at_a is None else found_a[at_a], None if at_b is None else found_b[at_b])
        for at_a, at_b in alignment.pairs
    ]
    asked = Entry(Crossing(0, "", "", "", input=question_a), Crossing(0, "", "", "", input=question_b))
    for entry in entries:
        if entry.a is not None and entry.b is not None:
            entry.differences += _differences(entry.a, entry.b)
    await _compare_contents(reader, a, b, [asked, *entries])
    asked.differences = [each._replace(what="question") for each in asked.differences]
    return Comparison(
        a=trace_a,
        b=trace_b,
        differences=(*_of_runs(trace_a, trace_b), *asked.differences),
        cannot_tell=tuple("question" for _ in asked.cannot_tell),
        usage=tuple(_usage(trace_a, trace_b)),
        elapsed_us=Delta("time", trace_a.run.elapsed_us, trace_b.run.elapsed_us),
        entries=tuple(entries),
        is_longest=alignment.is_longest,
    )


async def _side(reader: Reader, keys: Keys) -> tuple[RunTrace, Piece | None, Sequence[Crossing]]:
    trace = await reader.overview(*keys)
    crossings, question, last_seq = Crossings(keys[1]), None, 0
    # As far as it goes at that moment: what comes since belongs to another comparison.
    while last_seq < trace.run.event_count:
        for event in await reader.events(*keys, last_seq, min(PAGE_EVENTS, trace.run.event_count - last_seq)):
            last_seq = event.seq
            crossings.add(event)
            if event.type == "run.started":
                question = piece_of(event.fields, "query")
    return trace, question, list(crossings.found.values())


def _differences(a: Crossing, b: Crossing) -> Iterator[Difference]:
    settled = sorted(a.usage.keys() | b.usage.keys(), key=rank)
    for what, of_a, of_b in (
        ("place", a.place, b.place),
        ("outcome", a.outcome, b.outcome),
        ("attempts", a.attempt_count, b.attempt_count),
        *(
            # Where the outcomes differ they say as much.
            [("failures", ", ".join(a.failures), ", ".join(b.failures))] if a.outcome == b.outcome else []
        ),
        ("model", a.model, b.model),
        ("effect", a.effect, b.effect),
        *((noun(name), _amount(a, name), _amount(b, name)) for name in settled),
        ("hidden retries", a.hidden_retry_count, b.hidden_retry_count),
        ("limits passed", a.passed_count, b.passed_count),
    ):
        if of_a != of_b:
            yield Difference(what, _said(of_a), _said(of_b))


def _amount(crossing: Crossing, name: str) -> str | None:
    used = crossing.usage.get(name)
    return None if used is None else amount(name, used)


def _of_runs(trace_a: RunTrace, trace_b: RunTrace) -> Iterator[Difference]:
    a, b = trace_a.run, trace_b.run
    facts: list[tuple[str, object, object]] = [
        ("status", a.summary.status, b.summary.status),
        ("reason", a.outcome_reason, b.outcome_reason),
        ("degraded", a.degraded, b.degraded),
        ("flow", a.summary.agent_flow, b.summary.agent_flow),
        ("agent", a.agent, b.agent),
        ("agent version", a.agent_version, b.agent_version),
        ("environment", a.environment, b.environment),
        ("deadline", duration(a.timeout_us), duration(b.timeout_us)),
        ("prices", a.price_table, b.price_table),
    ]
    for what, of_a, of_b in (
        ("limit", a.limits, b.limits),
        ("observed limit", a.observed_limits, b.observed_limits),
        ("label", a.labels, b.labels),
    ):
        facts += [(f"{what} {name}", of_a.get(name), of_b.get(name)) for name in sorted(of_a.keys() | of_b.keys())]
    return (Difference(what, _said(of_a), _said(of_b)) for what, of_a, of_b in facts if of_a != of_b)


def _usage(a: RunTrace, b: RunTrace) -> Iterator[Delta]:
    for name in sorted(a.run.usage.keys() | b.run.usage.keys(), key=rank):
        yield Delta(name, a.run.usage.get(name), b.run.usage.get(name))


class _Both(NamedTuple):
    entry: Entry
    what: str
    a: Piece
    b: Piece


async def _compare_contents(reader: Reader, a: Keys, b: Keys, entries: Iterable[Entry]) -> None:
    """Tell of each entry which contents differ; only those of one size are read."""
    batch: list[_Both] = []
    size_bytes = 0
    for both in _both(entries):
        if batch and (len(batch) >= BATCH_CONTENTS or size_bytes + 2 * both.a.size_bytes > BATCH_BYTES):
            await _compare_batch(reader, a, b, batch)
            batch, size_bytes = [], 0
        batch.append(both)
        size_bytes += 2 * both.a.size_bytes
    if batch:
        await _compare_batch(reader, a, b, batch)


def _both(entries: Iterable[Entry]) -> Iterator[_Both]:
    """Pieces that have to be read; of the others it is told at once."""
    for entry in entries:
        if entry.a is None or entry.b is None:
            continue
        for what in ("input", "output"):
            of_a: Piece | None = getattr(entry.a, what)
            of_b: Piece | None = getattr(entry.b, what)
            if of_a is None or of_b is None or of_a.size_bytes != of_b.size_bytes:
                if of_a != of_b:
                    entry.differences.append(Difference(what, _sized(of_a), _sized(of_b)))
            elif of_a.digest != of_b.digest:  # else it is the same content with the same salt
                yield _Both(entry, what, of_a, of_b)


async def _compare_batch(reader: Reader, a: Keys, b: Keys, batch: Sequence[_Both]) -> None:
    of_a = await reader.contents(*a, {both.a.digest for both in batch})
    of_b = await reader.contents(*b, {both.b.digest for both in batch})
    for both in batch:
        data_a, data_b = (_read(found.get(piece.digest)) for found, piece in ((of_a, both.a), (of_b, both.b)))
        if data_a is None or data_b is None:
            both.entry.cannot_tell.append(both.what)
        elif data_a != data_b:
            same_size = f"other {_sized(both.a)}"
            both.entry.differences.append(Difference(both.what, _sized(both.a), same_size))


def _read(content: ContentView | None) -> tuple[str, bytes] | None:
    return None if content is None or content.data is None else (content.media_type, content.data)


def _sized(piece: Piece | None) -> str:
    return "none" if piece is None else f"{piece.size_bytes:,} bytes"


def _said(value: Any) -> str:
    return "none" if value is None or value == "" else str(value)
