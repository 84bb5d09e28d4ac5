"""Sockets to listen on, made before the server starts: a port, or a file that only named users may open."""

import contextlib
import fcntl
import grp
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

from viewer.cli import NotTried, OneLine

OWNER_ONLY = 0o600
OWNER_AND_GROUP = 0o660
BACKLOG = 128
"""Connections that wait to be taken; the system refuses more."""


def on_port(host: str, port: int) -> socket.socket:
    """A listening socket; its port is known before the server starts."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise OneLine(f"cannot listen on {host} port {port}: {_why(error)}") from error


@contextlib.contextmanager
def on_file(path: Path, group: str | None = None) -> Iterator[socket.socket]:
    """A listening Unix socket that only its owner may open, and the members of `group`; removed in the end.

    What a server that has died left behind is replaced; a socket that somebody listens on, and any other file, is not.
    """
    group_id = None if group is None else _group_id(group)
    try:
        listener = _bound(path, group_id)
    except OSError as error:
        raise OneLine(f"cannot listen on {path}: {_why(error)}") from error
    made = path.stat()
    try:
        with listener:
            yield listener
    finally:
        with contextlib.suppress(OSError):
            # Not one that somebody put in its place meanwhile.
            if os.path.samestat(path.lstat(), made):
                path.unlink()


def _bound(path: Path, group_id: int | None) -> socket.socket:
    with _alone_in(path.parent):
        _clear(path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(str(path))
            # Nobody can connect before it listens, so the mode is right before it counts.
            if group_id is not None:
                os.chown(path, -1, group_id)
            path.chmod(OWNER_ONLY if group_id is None else OWNER_AND_GROUP)
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
        return listener


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Of two servers that start at the same time, one looks and binds after the other."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _clear(path: Path) -> None:
    """Remove the socket of a server that has died."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise NotTried(f"{path} is there already, and is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        # A live server whose queue is full lets nobody in at once; it is alive all the same.
        asking.setblocking(False)
        try:
            asking.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except BlockingIOError:
            pass
    raise OneLine(f"cannot listen on {path}: another server does")


def _group_id(name: str) -> int:
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise NotTried(f"there is no group {name}") from None


def _why(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)
