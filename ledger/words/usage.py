"""How much of a resource a run used, as far as anybody knows: what was not reported is never 0 (SPEC H4a)."""

from __future__ import annotations

from typing import Final

from ledger.records import RunDetail

TOKENS: Final = ("input_tokens", "output_tokens", "total_tokens")
COST: Final = "cost_micros"
AT_LEAST: Final = "≥ "


def unknown_count(run: RunDetail, resource: str) -> int:
    """Attempts of which nobody knows how much of it they used; where there are any, what is known is not all."""
    if resource in TOKENS:
        return run.usage_unknown_count
    return run.cost_unknown_count if resource == COST else 0


def known(run: RunDetail, resource: str, shown: str, unknown: str = "unknown", nothing: str | None = None) -> str:
    """`shown`, which says what is known to be used of it; or that it is at least that, unknown, or nothing."""
    is_used = resource in run.usage
    if unknown_count(run, resource):
        return f"{AT_LEAST}{shown}" if is_used else unknown
    return shown if is_used or nothing is None else nothing
