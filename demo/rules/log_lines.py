"""Log lines as evidence: when each was written, by what service, and whether it is news or history."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Any

from demo.rules.results import Result, of_tool

RECENT = timedelta(minutes=90)
"""Before the newest line that any search returned; what is older is history."""
ISO_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)")
BEFORE_ALL = datetime.min.replace(tzinfo=UTC)
ERROR_LEVEL = re.compile(r'\b(?:ERROR|FATAL|CRITICAL|PANIC)\b|level"?[=:] ?"?(?:error|fatal|critical)')
SYSTEM_LINE = re.compile(
    r"^\S+ (?!(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL|PANIC) )"
    r"(?P<host>[\w.-]+) [\w./-]+(?:\[\d+\])?: "
)


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line that a search returned."""

    file: str
    line_no: int | None
    text: str
    at: datetime | None
    """As the line says it, whatever its time zone; None where it says nothing that could be read."""

    @property
    def service(self) -> str:
        """The name of its file, without folder and endings: that of the service, mostly."""
        return PurePosixPath(self.file).name.split(".", 1)[0]

    @property
    def host(self) -> str | None:
        """The machine that a line of a system log names."""
        found = SYSTEM_LINE.match(self.text)
        return found["host"] if found else None

    @property
    def is_error(self) -> bool:
        """Whether its level is that of an error."""
        return ERROR_LEVEL.search(self.text) is not None

    def as_match(self) -> Mapping[str, Any]:
        """As the search had it."""
        return {"file": self.file, "line_no": self.line_no, "text": self.text}


@dataclass(frozen=True, slots=True)
class Lines:
    """All lines that searches returned, each once, in the order of their times; those without a time come first."""

    all: tuple[LogLine, ...]

    @property
    def newest(self) -> datetime | None:
        """How far the logs reach."""
        return self.all[-1].at if self.all else None

    def matching(self, pattern: re.Pattern[str]) -> list[LogLine]:
        """Those that match and are news; one without a time is taken for news."""
        return [line for line in self.all if self.is_news(line) and pattern.search(line.text)]

    def is_news(self, line: LogLine) -> bool:
        """Whether it was written shortly before the newest one."""
        newest = self.newest
        return line.at is None or newest is None or newest - line.at <= RECENT


def lines_in(results: Sequence[Result]) -> Lines:
    """The lines of all log searches."""
    found = {(line.file, line.line_no, line.text): line for line in _lines(results)}
    return Lines(tuple(sorted(found.values(), key=lambda line: (line.at or BEFORE_ALL, line.line_no or 0))))


def _lines(results: Sequence[Result]) -> Iterator[LogLine]:
    for result in of_tool(results, "search_logs"):
        for match in result.value["matches"]:
            yield LogLine(match["file"], match["line_no"], match["text"], _time_of(match["text"]))


def _time_of(text: str) -> datetime | None:
    found = ISO_TIME.search(text)
    try:
        if not found:
            return None
        year, month, day, hour, minute, second = map(int, found.groups())
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
