"""Which file a ledger's address means, and whether SQLite can be trusted with it there."""

from __future__ import annotations

import os
from pathlib import Path

from ledger.errors import LedgerUnreadable, NetworkFileSystem, UnsupportedUrl

SQLITE_PREFIX = "sqlite:///"
POSTGRES_PREFIXES = ("postgresql://", "postgres://")

NETWORK_FILE_SYSTEMS = frozenset(
    {
        "9p",
        "afs",
        "ceph",
        "cifs",
        "fuse.glusterfs",
        "fuse.s3fs",
        "fuse.sshfs",
        "glusterfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "smb3",
        "smbfs",
    }
)
"""File systems whose locks are the server's, or nobody's."""


def is_postgres(url: object) -> bool:
    """Whether the address is one of a PostgreSQL database."""
    return str(url).startswith(POSTGRES_PREFIXES)


def path_of(url: str | Path) -> Path:
    """The file that `sqlite:///FILE`, or a plain path, means; `UnsupportedUrl` for anything else.

    Links are followed, so that a ledger has one lock and one log under whatever name it is opened.
    """
    text = str(url)
    if text.startswith(SQLITE_PREFIX):
        text = text.removeprefix(SQLITE_PREFIX)
    elif "://" in text or text.startswith("sqlite:"):
        raise UnsupportedUrl(f"is {text!r}, which is no SQLite file")
    if not text or text == ":memory:" or "\0" in text or "?" in text:
        raise UnsupportedUrl("names no file")
    path = Path(text).absolute()
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise LedgerUnreadable(path, "cannot be found: its links lead nowhere") from error


def check_file_system(path: Path, mounts: Path = Path("/proc/mounts")) -> None:
    """Raise `NetworkFileSystem` if `path` lies on one; `mounts` is the kernel's list."""
    found = file_system_of(path, mounts)
    if found in NETWORK_FILE_SYSTEMS:
        raise NetworkFileSystem(path, found)


def file_system_of(path: Path, mounts: Path = Path("/proc/mounts")) -> str:
    """The kind of file system that `path` lies on; nothing if that cannot be known."""
    try:
        real = path.parent.resolve()
        lines = mounts.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ""
    found, longest = "", -1
    for line in lines:
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(fields[1].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\"))
        # Of two mounts at one point the later one is what is seen.
        if real.is_relative_to(point) and len(point.parts) >= longest:
            found, longest = fields[2], len(point.parts)
    return found


def check_single_name(path: Path) -> None:
    """Raise `LedgerUnreadable` for a file of several names (hard links): each would have its own lock and log."""
    name_count = path.stat().st_nlink if path.is_file() else 1
    if name_count > 1:
        raise LedgerUnreadable(path, f"has {name_count} names (hard links), and a ledger has one")


def file_at(path: Path) -> tuple[int, int] | None:
    """Which file the path leads to now; None if it leads to none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def size_of(path: Path) -> int:
    """Bytes of the file that is there; 0 if none is."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def prepare_folder(path: Path) -> None:
    """Make the folder that the ledger's file will be in; `LedgerUnreadable` if that is not possible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LedgerUnreadable(path, f"has no folder, and none can be made ({error.strerror})") from error


def sync(path: Path) -> None:
    """Make sure that what a file holds, or which names a folder has, survives a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
