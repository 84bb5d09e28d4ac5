"""Earlier cases that people found useful, the most similar first: how a trouble like this one was explained before."""

import re
from typing import Protocol, TypedDict

from demo.bounds import CASE_ANSWER_CHARS_MAX, CASES_READ_MAX, CASES_SHOWN_MAX
from demo.tools.errors import CasesUnreadable
from harness import RunContext
from ledger.errors import LedgerError
from ledger.records import UsefulCase

WORD = re.compile(r"[^\W\d_]{3,}")
SIMILAR_MIN = 0.25
"""Of all words of both questions, the share that they have in common."""


class Cases(Protocol):
    """The part of a ledger's reader that is used here."""

    async def cases(self, limit: int = ...) -> list[UsefulCase]:
        """The newest ones; none that was withdrawn or erased."""


class SimilarCase(TypedDict):
    """One earlier case."""

    run_id: str
    question: str
    answer: str
    """Its beginning, if it is long."""
    verdict: str
    """The gatekeeper's: APPROVED, or what speaks against learning from it."""
    similarity: float
    """From 0 to 1."""


class SimilarCases(TypedDict):
    """The most similar ones first."""

    question: str
    cases_read: int
    cases: list[SimilarCase]


async def similar_cases(run: RunContext, question: str, limit: int = 2, *, cases: Cases) -> SimilarCases:
    """Cases whose question has words in common with this one."""
    try:
        known = await cases.cases(CASES_READ_MAX)
    except LedgerError as error:
        raise CasesUnreadable(f"earlier cases cannot be read: {error}") from error
    ranked = sorted(((_similarity(question, case.query), case) for case in known), key=lambda row: -row[0])
    found = [
        SimilarCase(
            run_id=case.run_id,
            question=case.query[:CASE_ANSWER_CHARS_MAX],
            answer=case.answer[:CASE_ANSWER_CHARS_MAX],
            verdict=case.verdict,
            similarity=round(similarity, 2),
        )
        for similarity, case in ranked
        if similarity >= SIMILAR_MIN
    ]
    return SimilarCases(question=question, cases_read=len(known), cases=found[: max(1, min(limit, CASES_SHOWN_MAX))])


def _similarity(one: str, other: str) -> float:
    mine, theirs = ({word.lower() for word in WORD.findall(text)} for text in (one, other))
    return len(mine & theirs) / len(mine | theirs) if mine and theirs else 0.0
