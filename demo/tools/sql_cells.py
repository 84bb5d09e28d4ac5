"""A value from a database as JSON has it: what JSON has no form for is a text, and a long text is cut."""

import json
import math
from collections.abc import Mapping
from datetime import date, datetime, time

from demo.bounds import SQL_CELL_CHARS_SHOWN
from demo.text import beginning, whole

Cell = None | bool | int | float | str
INTEGER_MAX = 2**53 - 1
"""What every reader of JSON keeps exactly."""


def shown_cell(value: object) -> Cell:
    """The value; a time in ISO 8601, bytes by their number, an array or object as JSON within a text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) <= INTEGER_MAX:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    return cut(json.dumps(value, default=str) if isinstance(value, Mapping | list) else str(value))


def cut(text: str) -> str:
    """The text as far as it is shown."""
    return whole(beginning(text, SQL_CELL_CHARS_SHOWN))
