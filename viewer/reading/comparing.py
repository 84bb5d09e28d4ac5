"""Comparisons of two runs, a few at once."""

import asyncio

from ledger.audit.comparing.comparing import Comparison, compare
from viewer.reading.reader import Reader

COMPARISONS_AT_ONCE = 2
"""A further one waits: two long runs take some hundred megabytes and seconds."""


class Comparisons:
    """Those of one server, for people and for programs."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._room = asyncio.Semaphore(COMPARISONS_AT_ONCE)

    async def of(self, a: tuple[str, str], b: tuple[str, str]) -> Comparison:
        """Each by its session and run; an unknown run and one of another session are the same error."""
        async with self._room:
            return await compare(self._reader, a, b)
