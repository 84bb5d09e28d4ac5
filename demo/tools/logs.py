"""Search in log files, rotated and gzip ones too: newest lines first, bounded, and open about what it left out.

Patterns come from a model, so they are matched by RE2, which takes linear time: none can hold the process up.
"""

import json
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypedDict

import re2  # type: ignore[import-untyped]

from demo.bounds import (
    LOG_BYTES_MAX,
    LOG_FILES_MAX,
    LOG_LINE_CHARS_SHOWN,
    LOG_MATCHES_SHOWN_MAX,
    LOG_SKIPPED_SHOWN_MAX,
    TOOL_SHOWN_BYTES_MAX,
)
from demo.text import beginning
from demo.tools.errors import InvalidPattern
from demo.tools.log_files import LogFile, Skipped, find_log_files, open_log_file
from demo.tools.log_text import DamagedGzip, LogText
from harness import RunContext


class LogMatch(TypedDict):
    """One line that matches."""

    file: str
    line_no: int | None
    """From 1; None where only the end of the file was read."""
    text: str


class FileMatches(TypedDict):
    """How many lines of one file match, shown or not."""

    file: str
    match_count: int


class LogMatches(TypedDict):
    """What was found, where, and how much was looked at."""

    folder: str
    pattern: str
    mode: Literal["regex", "text"]
    match_count: int
    matches: list[LogMatch]
    matches_by_file: list[FileMatches]
    files_searched: int
    lines_searched: int
    bytes_searched: int
    skipped_count: int
    skipped: list[Skipped]
    limits_reached: list[str]


@dataclass(slots=True)
class _Search:
    """A search under way."""

    folder: Path
    compiled: Any
    shown_max: int
    matches: list[LogMatch] = field(default_factory=list)
    by_file: list[FileMatches] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    limits_reached: set[str] = field(default_factory=set)
    files: int = 0
    lines: int = 0
    size_bytes: int = 0
    shown_bytes: int = 0

    def read(self, file: LogFile) -> None:
        """Search one file, or note why not."""
        try:
            with open_log_file(self.folder, file) as stream:
                text = LogText(stream, LOG_BYTES_MAX - self.size_bytes)
                if text.is_binary:
                    self._skip(file, "binary")
                else:
                    self._search(file, text)
        except OSError as error:
            self._skip(file, error.strerror or str(error) or "unreadable")

    def _search(self, file: LogFile, text: LogText) -> None:
        newest: deque[tuple[int, bytes]] = deque(maxlen=self.shown_max - len(self.matches))
        line_no, match_count = 0, 0
        try:
            for line_no, line in enumerate(text.lines(), start=1):
                if self.compiled.search(line):
                    match_count += 1
                    newest.append((line_no, line))
            if limit := text.limit_reached:
                self.limits_reached.add(limit)
        except DamagedGzip as error:
            self._skip(file, f"{error}, searched up to there")
        self.files += 1
        self.lines += line_no
        self.size_bytes += text.size_bytes
        if match_count:
            self.by_file.append(FileMatches(file=file.name, match_count=match_count))
        for number, line in reversed(newest):
            shown_no = None if text.starts_within else number
            self._show(LogMatch(file=file.name, line_no=shown_no, text=_shown_text(line)))

    def _skip(self, file: LogFile, reason: str) -> None:
        self.skipped.append(Skipped(file=file.name, reason=reason))

    def _show(self, match: LogMatch) -> None:
        size_bytes = len(json.dumps(match))
        if self.shown_bytes + size_bytes > TOOL_SHOWN_BYTES_MAX:
            self.limits_reached.add("shown bytes")
        else:
            self.shown_bytes += size_bytes
            self.matches.append(match)


def search_logs(
    run: RunContext, pattern: str, regex: bool = False, name_pattern: str = "*", limit: int = 20, *, folder: Path
) -> LogMatches:
    """Lines that match, upper and lower case alike, from the newest file's newest line on."""
    found = find_log_files(folder, name_pattern)
    search = _Search(folder, _compile(pattern, regex=regex), max(1, min(limit, LOG_MATCHES_SHOWN_MAX)))
    search.skipped.extend(found.skipped)
    if not found.complete:
        search.limits_reached.add("entries")
    for file in found.files:
        if run.cancellation.is_signalled:
            # Nobody waits for the rest; a thread cannot be stopped, but it can stop.
            search.limits_reached.add("run ended")
            break
        if search.files >= LOG_FILES_MAX:
            search.limits_reached.add("files")
            break
        if search.size_bytes >= LOG_BYTES_MAX:
            search.limits_reached.add("bytes")
            break
        search.read(file)
    return LogMatches(
        folder=str(folder),
        pattern=pattern,
        mode="regex" if regex else "text",
        match_count=sum(row["match_count"] for row in search.by_file),
        matches=search.matches,
        matches_by_file=search.by_file[:LOG_SKIPPED_SHOWN_MAX],
        files_searched=search.files,
        lines_searched=search.lines,
        bytes_searched=search.size_bytes,
        skipped_count=len(search.skipped),
        skipped=search.skipped[:LOG_SKIPPED_SHOWN_MAX],
        limits_reached=sorted(search.limits_reached),
    )


def _compile(pattern: str, *, regex: bool) -> Any:
    options = re2.Options()
    options.case_sensitive = False
    options.literal = not regex
    options.log_errors = False
    try:
        return re2.compile(pattern.encode("utf-8"), options)
    except (re2.error, UnicodeEncodeError) as error:
        why = error.args[0].decode("utf-8", "replace") if isinstance(error, re2.error) else "it is not valid text"
        raise InvalidPattern(
            f"{pattern!r} is not a regular expression that can be searched for: {why}. "
            "Mend it, or set regex to false to find it as plain text."
        ) from None


def _shown_text(piece: bytes) -> str:
    return beginning(piece.decode("utf-8", "replace").strip(), LOG_LINE_CHARS_SHOWN)
