"""A private MariaDB server: the system's program, a free port, a folder that goes with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pymysql  # type: ignore[import-untyped]

from tests.servers.postgres import SEARCHED, SHARED, _die_with_parent, _unprivileged, free_port, wait_until_ready

PREFIX = "tachograph-mariadb-"
TIMEOUT_S = 30.0
ROOT = "root"


class MariaDb:
    """One that runs."""

    def __init__(self, port: int) -> None:
        self.port = port

    def url(self, database: str = "test", user: str = ROOT) -> str:
        return f"mysql://{user}@127.0.0.1:{self.port}/{database}"

    def query(self, *statements: str) -> tuple[tuple[object, ...], ...]:
        """Run statements as root; the rows of the last."""
        connection = pymysql.connect(host="127.0.0.1", port=self.port, user=ROOT, autocommit=True)
        with closing(connection), connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return tuple(cursor.fetchall())


@contextmanager
def mariadb_served() -> Iterator[MariaDb]:
    """An empty server with a database `test`, until the block is left."""
    program, install = shutil.which("mariadbd", path=SEARCHED), shutil.which("mariadb-install-db", path=SEARCHED)
    missing = "MariaDB is missing: apt-get install mariadb-server-core"
    assert program is not None, missing
    assert install is not None, missing
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=SHARED))
    user = _unprivileged().pw_name if os.geteuid() == 0 else None
    as_user = [f"--user={user}"] if user else []
    if user:
        shutil.chown(folder, user)
    try:
        data = ["--no-defaults", *as_user, f"--datadir={folder / 'data'}"]
        made = [install, *data, "--auth-root-authentication-method=normal", "--skip-test-db"]
        subprocess.run(made, check=True, capture_output=True)
        server = MariaDb(free_port())
        options = [f"--port={server.port}", "--bind-address=127.0.0.1", f"--socket={folder / 'socket'}"]
        options += [f"--pid-file={folder / 'pid'}", "--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen([program, *data, *options], stdout=log, stderr=log, preexec_fn=_die_with_parent)
        try:
            wait_until_ready(lambda: _answers(server), process, folder / "log", TIMEOUT_S)
            server.query("CREATE DATABASE test")
            yield server
        finally:
            process.terminate()
            process.wait(TIMEOUT_S)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _answers(server: MariaDb) -> bool:
    try:
        return bool(server.query("SELECT 1"))
    except pymysql.OperationalError:
        return False
