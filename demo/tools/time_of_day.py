"""What time it is, which no model knows: log lines and graphs are read by it."""

from datetime import UTC, datetime
from typing import TypedDict

from harness import RunContext
from harness.clock import WallClock


class TimeOfDay(TypedDict):
    """Now, three times over."""

    utc: str
    """RFC 3339."""
    local: str
    """By this machine's clock on the wall, with its offset."""
    time_zone: str
    unix_s: int


def current_time(run: RunContext, *, clock: WallClock) -> TimeOfDay:
    """The time of this machine."""
    now = datetime.fromtimestamp(clock.now_us() // 1_000_000, UTC)
    local = now.astimezone()
    return TimeOfDay(
        utc=now.isoformat().replace("+00:00", "Z"),
        local=local.isoformat(),
        time_zone=local.tzname() or "UTC",
        unix_s=int(now.timestamp()),
    )
