"""What was decided about erasing, in the ledger's own stream, and what runs say was taken of them, agree (SPEC D19).

A decision comes before what runs say of it, and its end after. So every run's word is held against all decisions that
there are by then, and only ends that were on record before the first run was looked at are held against the runs. All
of it is asked only where streams are right by themselves: else nobody knows what they say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.ids import SYSTEM_STREAM
from ledger.erasing.erasures import DECISIONS
from ledger.reading.reader import LedgerReader
from ledger.reading.told import told
from ledger.verifying.findings import FINDINGS_MAX, Finding
from ledger.verifying.taken import Taken, Word

FINISHED = "erasure.finished"
FIGURES = ("run_count", "content_count", "size_bytes")


async def check_erasures(reader: LedgerReader, said: Mapping[Word, Taken], ends_upto: int) -> tuple[Finding, ...]:
    """What does not agree; ends after the event `ends_upto` of the ledger's own stream are passed over."""
    decided: dict[str, Mapping[str, Any]] = {}
    ends: list[tuple[int, Mapping[str, Any]]] = []
    async for event in told(reader, (*DECISIONS, FINISHED)):
        if event.type in DECISIONS:
            decided[event.fields["erasure_id"]] = event.fields
        elif event.seq <= ends_upto:
            ends.append((event.seq, event.fields))
    return (*_undecided(said, decided), *_unsaid(said, ends))[:FINDINGS_MAX]


def _undecided(said: Mapping[Word, Taken], decided: Mapping[str, Mapping[str, Any]]) -> Iterable[Finding]:
    for word, taken in said.items():
        decision = decided.get(word.erasure_id)
        if decision is None:
            detail = f"erasure {word.erasure_id} was never decided"
        elif not _is_meant(word, decision):
            detail = f"erasure {word.erasure_id} was decided otherwise"
        else:
            continue
        yield Finding("erasure_differs", detail, taken.stream_id, taken.seq)


def _unsaid(said: Mapping[Word, Taken], ends: Iterable[tuple[int, Mapping[str, Any]]]) -> Iterable[Finding]:
    by_id: dict[str, Taken] = {}
    for word, taken in said.items():
        by_id[word.erasure_id] = taken if word.erasure_id not in by_id else by_id[word.erasure_id].plus(taken)
    for seq, end in ends:
        found = by_id.get(end["erasure_id"], Taken("", 0, 0, 0, 0))
        for name in FIGURES:
            if getattr(found, name) < end[name]:
                detail = f"its {name} is {end[name]}, and runs say {getattr(found, name)}"
                yield Finding("erasure_differs", detail, SYSTEM_STREAM, seq)
                break


def _is_meant(word: Word, decision: Mapping[str, Any]) -> bool:
    """Whether what a run says of an erasure is what was decided."""
    says = (word.scope, word.reason, word.actor, word.digest)
    if says != (decision.get("scope", "RETENTION"), *(decision.get(name) for name in ("reason", "actor", "digest"))):
        return False
    wanted = (decision.get("of_session_id"), decision.get("of_run_id"))
    return all(one in (None, other) for one, other in zip(wanted, (word.session_id, word.run_id), strict=True))
