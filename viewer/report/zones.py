"""Points in time as people of one place say them, always with the name of their zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from harness.errors import InvalidInput
from ledger.words.format import day_time
from ledger.words.times import moment_us, since_epoch_us

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Zone:
    """A time zone by its name in the zone database, such as `Europe/Berlin`."""

    name: str
    info: ZoneInfo

    @classmethod
    def named(cls, name: str) -> Zone:
        """`InvalidInput` for a name that this machine does not know."""
        try:
            return cls(name, ZoneInfo(name))
        except (KeyError, OSError, ValueError) as error:
            raise InvalidInput("zone", f"is not known here: {name[:40]!r}") from error

    @property
    def is_utc(self) -> bool:
        """Whether its times are UTC anyway."""
        return self.name == "UTC"

    def words(self, epoch_us: int) -> str:
        """`1 Dec 2026 06:01:02 CET`."""
        here = (_EPOCH + timedelta(microseconds=epoch_us)).astimezone(self.info)
        shown = day_time(since_epoch_us(here.replace(tzinfo=UTC))).removesuffix(" UTC")
        return f"{shown} {here:%Z}"

    def moment(self, field: str, text: str) -> int:
        """Microseconds since the epoch of an RFC 3339 time, or of the beginning of a day in this zone."""
        return moment_us(field, text, self.info)
