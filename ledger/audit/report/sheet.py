"""Every run of the period on a line of CSV, written as it is read, and hashed whether it is kept or not."""

from __future__ import annotations

import csv
import io
from dataclasses import astuple, fields
from hashlib import sha256
from typing import BinaryIO

from ledger.audit.report.records import RunLine
from ledger.words.format import instant

COLUMNS = tuple(
    field.name.removesuffix("_us") if field.name in ("started_us", "ended_us") else field.name
    for field in fields(RunLine)
)
TIMES = [index for index, field in enumerate(fields(RunLine)) if field.name in ("started_us", "ended_us")]
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What makes a spreadsheet reckon with a cell instead of showing it; an apostrophe is put before it."""


class Sheet:
    """RFC 4180 with a heading, UTF-8, lines that end in CR LF; times are RFC 3339 in UTC."""

    def __init__(self, file: BinaryIO | None = None) -> None:
        self._file = file
        self._hash = sha256()
        self._write(COLUMNS)

    def add(self, run: RunLine) -> None:
        """Write the run's line."""
        cells = list(astuple(run))
        for index in TIMES:
            cells[index] = "" if cells[index] is None else instant(cells[index])
        self._write([_cell(value) for value in cells])

    @property
    def digest(self) -> str:
        """SHA-256 of what was written so far, in hexadecimal."""
        return self._hash.hexdigest()

    def _write(self, cells: tuple[str, ...] | list[object]) -> None:
        line = io.StringIO(newline="")
        csv.writer(line).writerow(cells)
        data = line.getvalue().encode()
        self._hash.update(data)
        if self._file is not None:
            self._file.write(data)


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
