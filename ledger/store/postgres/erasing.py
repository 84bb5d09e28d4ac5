"""Erasing in PostgreSQL: not there yet, and said so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from harness.errors import LedgerUnavailable
from ledger.erasing import Order, Taken


class PostgresErasing:
    """A `ledger.erasing.ErasingStore` that erases nothing."""

    async def check(self, order: Order) -> None:
        _refuse()

    async def targets(self, order: Order, after: str) -> list[str]:
        _refuse()

    async def count(self, order: Order) -> tuple[int, int, int]:
        _refuse()

    async def decide(self, order: Order) -> None:
        _refuse()

    async def take(self, order: Order, stream_ids: Sequence[str]) -> Taken:
        _refuse()

    async def all_taken(self, order: Order) -> None:
        _refuse()

    async def unfinished(self) -> list[tuple[Order, bool]]:
        return []

    async def clean_log(self) -> bool:
        _refuse()

    async def size_bytes(self) -> int:
        _refuse()

    async def rewrite(self) -> None:
        _refuse()

    async def finish(self, order: Order) -> bool:
        _refuse()


def _refuse() -> NoReturn:
    raise LedgerUnavailable("erasing is not yet possible on PostgreSQL")
