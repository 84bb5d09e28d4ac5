"""What was erased, as a list kept apart from the ledger: a backup from before holds it still (SPEC D19).

One JSON object a line: first whose list it is, then each decision, then each run that it took content of, and at last
how many lines these are, with their SHA-256, so that one that was cut is not taken for whole. `restore` carries
out again what its backup does not know.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from harness.events import ErasureDecided, RetentionDecided, parse_event
from harness.ids import run_stream
from ledger.erasing.erasing import Order
from ledger.errors import InvalidErasureList
from ledger.reading.reader import LedgerReader
from ledger.reading.told import told

KIND = "tachograph erasures"
VERSION = 1
PAGE = 500
DECISIONS = ("erasure.decided", "retention.decided")


@dataclass(frozen=True, slots=True)
class ErasureList:
    """A list in a file, read line by line."""

    path: Path

    def check(self, ledger_id: str) -> None:
        """`InvalidErasureList` unless it is one, that ledger's, and whole."""
        count, digest, end = 0, sha256(), None
        for line in self._lines():
            fields = self._fields_of(line)
            if count == 0:
                self._check_first(fields, ledger_id)
            if end is not None:
                raise InvalidErasureList(self.path, "goes on after its end")
            if "line_count" in fields:
                end = fields
            else:
                count += 1
                digest.update(line)
        if end is None:
            raise InvalidErasureList(self.path, "has no end: it was cut" if count else "is empty")
        if (end["line_count"], end.get("sha256")) != (count, digest.hexdigest()):
            raise InvalidErasureList(self.path, "is not as it was written")

    def orders(self) -> Iterator[Order]:
        """The decisions, in the order in which they were taken, each once."""
        known = set()
        for fields in map(self._fields_of, self._lines()):
            if fields.get("type") not in DECISIONS:
                continue
            try:
                order = order_of(fields)
            except (TypeError, ValueError) as error:
                raise InvalidErasureList(self.path, "holds a decision that cannot be read") from error
            if order.erasure_id not in known:
                known.add(order.erasure_id)
                yield order

    def told(self) -> Iterator[tuple[str, str]]:
        """The erasures and the streams that they took content of."""
        for fields in map(self._fields_of, self._lines()):
            if "run_id" in fields:
                yield str(fields.get("erasure_id")), run_stream(str(fields["run_id"]))

    def _check_first(self, fields: Mapping[str, Any], ledger_id: str) -> None:
        if fields.get("kind") != KIND or fields.get("version") != VERSION:
            raise InvalidErasureList(self.path, "is no list of erasures that this program can read")
        if fields.get("ledger_id") != ledger_id:
            raise InvalidErasureList(self.path, "is the list of another ledger")

    def _lines(self) -> Iterator[bytes]:
        try:
            with self.path.open("rb") as lines:
                yield from lines
        except OSError as error:
            raise InvalidErasureList(self.path, f"cannot be read ({error.strerror})") from error

    def _fields_of(self, line: bytes) -> Mapping[str, Any]:
        try:
            value = json.loads(line)
        except ValueError as error:
            raise InvalidErasureList(self.path, "holds a line that is no JSON") from error
        if not isinstance(value, dict):
            raise InvalidErasureList(self.path, "holds a line that is no JSON object")
        return value


async def lines_of(reader: LedgerReader, ledger_id: str) -> AsyncIterator[bytes]:
    """The list of all that was ever decided to be erased, line by line."""
    count, digest = 0, sha256()
    async for line in _content_of(reader, ledger_id):
        yield line
        count += 1
        digest.update(line)
    yield _line({"line_count": count, "sha256": digest.hexdigest()})


async def _content_of(reader: LedgerReader, ledger_id: str) -> AsyncIterator[bytes]:
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
    async for event in told(reader, DECISIONS):
        yield event.fields


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
