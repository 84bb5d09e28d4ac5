"""Points in time as people give them to a command: a day, or an RFC 3339 time with its offset."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

from harness.errors import InvalidInput

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def moment_us(field: str, text: str, zone: tzinfo = UTC) -> int:
    """Microseconds since the epoch of such a time, or of a day's beginning in `zone`; `InvalidInput` for all else."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(field, f"must be a day or an RFC 3339 time, not {text[:40]!r}") from error
    if at.tzinfo is None:
        if not _DAY.fullmatch(text):
            raise InvalidInput(field, "must say its offset from UTC, such as 2026-12-01T06:00:00+01:00")
        at = at.replace(tzinfo=zone)
    return since_epoch_us(at)


def since_epoch_us(at: datetime) -> int:
    """Whole microseconds from the epoch to a time that has a zone."""
    return (at - _EPOCH) // _MICROSECOND
