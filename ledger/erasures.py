"""What was erased, as a list kept apart from the ledger: a backup from before holds it still (SPEC D19).

One JSON object a line: first whose list it is, then each decision, then each run that it took content of. `restore`
carries out again what its backup does not know.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from harness.events import ErasureDecided, RetentionDecided, parse_event
from harness.ids import run_stream
from ledger.erasing import Order
from ledger.errors import InvalidErasureList
from ledger.reader import LedgerReader

KIND = "tachograph erasures"
VERSION = 1
PAGE = 500
DECISIONS = ("erasure.decided", "retention.decided")


@dataclass(frozen=True, slots=True)
class ErasureList:
    """A list in a file, read line by line."""

    path: Path

    def check(self, ledger_id: str) -> None:
        """`InvalidErasureList` unless it is one, and that ledger's."""
        first = next(iter(self._lines()), {})
        if first.get("kind") != KIND or first.get("version") != VERSION:
            raise InvalidErasureList(self.path, "is no list of erasures that this program can read")
        if first.get("ledger_id") != ledger_id:
            raise InvalidErasureList(self.path, "is the list of another ledger")

    def orders(self) -> Iterator[Order]:
        """The decisions, in the order in which they were taken."""
        for line in self._lines():
            if line.get("type") in DECISIONS:
                try:
                    yield order_of(line)
                except (TypeError, ValueError) as error:
                    raise InvalidErasureList(self.path, "holds a decision that cannot be read") from error

    def told(self) -> Iterator[tuple[str, str]]:
        """The erasures and the streams that they took content of."""
        for line in self._lines():
            if "run_id" in line:
                yield str(line.get("erasure_id")), run_stream(str(line["run_id"]))

    def _lines(self) -> Iterator[Mapping[str, Any]]:
        try:
            with self.path.open("rb") as lines:
                for line in lines:
                    value = json.loads(line)
                    if not isinstance(value, dict):
                        raise InvalidErasureList(self.path, "holds a line that is no JSON object")
                    yield value
        except OSError as error:
            raise InvalidErasureList(self.path, f"cannot be read ({error.strerror})") from error
        except ValueError as error:
            raise InvalidErasureList(self.path, "holds a line that is no JSON") from error


async def lines_of(reader: LedgerReader, ledger_id: str) -> AsyncIterator[bytes]:
    """The list of all that was ever decided to be erased, line by line."""
    yield _line({"kind": KIND, "version": VERSION, "ledger_id": ledger_id})
    async for fields in decisions(reader):
        yield _line(fields)
    after = ("", 0)
    while page := await reader.erased_runs(after, PAGE):
        for run_id, _, erasure_id in page:
            yield _line({"erasure_id": erasure_id, "run_id": run_id})
        after = (run_stream(page[-1][0]), page[-1][1])


async def decisions(reader: LedgerReader) -> AsyncIterator[Mapping[str, Any]]:
    """Every decision to erase that the ledger's own stream holds."""
    last = 0
    while events := await reader.system_events(last, PAGE):
        for event in events:
            if event.type in DECISIONS:
                yield event.fields
        last = events[-1].seq


def order_of(fields: Mapping[str, Any]) -> Order:
    """The order that a decision stands for."""
    said = parse_event(dict(fields))
    if isinstance(said, RetentionDecided):
        return Order("RETENTION", said.reason, said.actor, before_us=said.before_us, erasure_id=said.erasure_id)
    if not isinstance(said, ErasureDecided):
        raise ValueError("no decision to erase")
    about = (said.of_session_id, said.of_run_id, said.digest)
    return Order(said.scope, said.reason, said.actor, *about, erasure_id=said.erasure_id)


def _line(fields: Mapping[str, Any]) -> bytes:
    return orjson.dumps(fields, option=orjson.OPT_SORT_KEYS) + b"\n"
