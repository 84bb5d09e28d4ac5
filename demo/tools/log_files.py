"""Log files under one folder, and never outside it: no symbolic link is followed, each step is opened beneath the last.

What cannot or should not be read is said, not hidden: each `Skipped` names a file and the reason.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from stat import S_ISLNK, S_ISREG
from typing import BinaryIO, TypedDict

from demo.bounds import LOG_ENTRIES_MAX
from demo.tools.errors import FolderUnreadable

PACKED_SUFFIXES = frozenset({".xz", ".bz2", ".zst", ".zip", ".lz4"})
"""Not unpacked; gzip is."""
NAME_CHARS_SHOWN = 120


class Skipped(TypedDict):
    """A file that was not searched, and why."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class LogFile:
    """A regular file under the folder."""

    parts: tuple[str, ...]
    """Its path beneath the folder, as the file system spells it."""
    size_bytes: int
    modified_ns: int

    @property
    def name(self) -> str:
        return shown_name(self.parts)


@dataclass(frozen=True, slots=True)
class Found:
    """The files of a folder, newest first, and what was left out."""

    files: tuple[LogFile, ...]
    skipped: tuple[Skipped, ...]
    complete: bool
    """False if the folder holds more entries than are looked at."""


def shown_name(parts: tuple[str, ...]) -> str:
    """A path as text that any JSON writer takes, however its bytes were spelled."""
    text = "/".join(parts).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return text if len(text) <= NAME_CHARS_SHOWN else f"…{text[1 - NAME_CHARS_SHOWN :]}"


def find_log_files(folder: Path, name_pattern: str = "*") -> Found:
    """The files whose path or name matches a shell pattern such as `nginx*` or `*/error.log`."""
    try:
        is_folder = folder.is_dir()
    except OSError as error:
        raise FolderUnreadable(f"the log folder `{folder}` cannot be read: {error.strerror}") from error
    if not is_folder:
        raise FolderUnreadable(f"there is no log folder `{folder}`")
    files: list[LogFile] = []
    skipped: list[Skipped] = []
    seen_count = 0
    for parts, stat in _entries(folder, skipped):
        seen_count += 1
        if seen_count > LOG_ENTRIES_MAX:
            return Found(_newest_first(files), tuple(skipped), complete=False)
        path = PurePosixPath(*parts)
        if not (fnmatchcase(path.name, name_pattern) or fnmatchcase(str(path), name_pattern)):
            continue
        if S_ISLNK(stat.st_mode):
            skipped.append(Skipped(file=shown_name(parts), reason="symbolic link"))
        elif not S_ISREG(stat.st_mode):
            skipped.append(Skipped(file=shown_name(parts), reason="not a regular file"))
        elif path.suffix.lower() in PACKED_SUFFIXES:
            skipped.append(Skipped(file=shown_name(parts), reason="packed, but not with gzip"))
        else:
            files.append(LogFile(parts, stat.st_size, stat.st_mtime_ns))
    return Found(_newest_first(files), tuple(skipped), complete=True)


@contextmanager
def open_log_file(folder: Path, file: LogFile) -> Iterator[BinaryIO]:
    """The file for reading; `OSError` if it, or a folder on the way, has become a link or is closed to us."""
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in file.parts[:-1]:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
            os.close(directory)
            directory = below
        # Not to wait for a writer if the file has become a pipe.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        stream = os.fdopen(os.open(file.parts[-1], flags, dir_fd=directory), "rb")
    finally:
        os.close(directory)
    with stream:
        if not S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError("not a regular file")
        yield stream


def _entries(folder: Path, skipped: list[Skipped]) -> Iterator[tuple[tuple[str, ...], os.stat_result]]:
    """Every file and link beneath the folder; folders that cannot be read are noted as skipped."""

    def unreadable(error: OSError) -> None:
        path = Path(os.fsdecode(error.filename)) if error.filename else folder
        parts = path.relative_to(folder).parts if path.is_relative_to(folder) else path.parts
        skipped.append(Skipped(file=shown_name(parts) or ".", reason=error.strerror or "unreadable"))

    for root, folders, names, directory in os.fwalk(folder, follow_symlinks=False, onerror=unreadable):
        above = Path(root).relative_to(folder).parts
        folders.sort()
        for name in sorted([*names, *folders]):
            # One that has gone in the meantime is no longer there to be searched.
            with suppress(FileNotFoundError):
                stat = os.stat(name, dir_fd=directory, follow_symlinks=False)
                if name not in folders or S_ISLNK(stat.st_mode):
                    yield (*above, name), stat


def _newest_first(files: list[LogFile]) -> tuple[LogFile, ...]:
    return tuple(sorted(files, key=lambda file: (-file.modified_ns, file.parts)))
