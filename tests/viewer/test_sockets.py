"""`tachograph serve --uds`: a file that only named users may open, and that is there while the server is."""

import grp
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner

from ledger import Ledger
from tests.servers.postgres import SHARED
from viewer.cli import OneLine
from viewer.serve import serve
from viewer.serving.sockets import on_file

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-c", "from viewer.serve import serve; serve()"]


@pytest.fixture
async def db(tmp_path) -> str:
    async with await Ledger.open(tmp_path / "runs.db") as ledger:
        await ledger.open_session("s-1")
    return f"sqlite:///{tmp_path / 'runs.db'}"


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "socket"


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_it_serves_on_a_unix_socket_that_only_its_owner_may_open_and_removes_it(db, path):
    process = subprocess.Popen([*COMMAND, "--db", db, "--uds", path], cwd=ROOT, text=True, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == f"Serving {db} at unix:{path} (Ctrl-C stops)\n"
        assert mode_of(path) == 0o600
        with httpx2.Client(transport=httpx2.HTTPTransport(uds=str(path)), base_url="http://localhost") as client:
            assert client.get("/api/chat/session/s-1").json()["data"]["sessionId"] == "s-1"
            assert client.get("/healthz", headers={"Host": "evil.example"}).status_code == 400
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert not path.exists()
    finally:
        process.kill()
        process.communicate()


def test_a_group_may_be_let_in(path):
    group = grp.getgrgid(os.getgid()).gr_name
    with on_file(path, group):
        assert (mode_of(path), path.stat().st_gid) == (0o660, os.getgid())


def test_the_socket_of_a_server_that_died_is_replaced(path):
    with socket.socket(socket.AF_UNIX) as died:
        died.bind(str(path))
        died.listen()
    assert path.exists()
    with on_file(path) as listener, socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        listener.accept()[0].close()
    assert not path.exists()


def test_the_socket_of_a_live_server_is_left_alone(path):
    with on_file(path), pytest.raises(OneLine, match="another server does"), on_file(path):
        pass


def test_a_live_server_that_lets_nobody_in_is_left_alone(path):
    with socket.socket(socket.AF_UNIX) as busy:
        busy.bind(str(path))
        busy.listen(0)
        with socket.socket(socket.AF_UNIX) as waiting:
            waiting.connect(str(path))
            with pytest.raises(OneLine, match="another server does"), on_file(path):
                pass


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_what_is_no_socket_is_left_alone(path, kind):
    if kind == "file":
        path.write_text("mine")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("elsewhere")
    with pytest.raises(OneLine, match="is there already, and is no socket"), on_file(path):
        pass
    assert path.is_symlink() or path.exists()


def test_what_somebody_put_in_its_place_meanwhile_is_left_alone(path):
    with on_file(path):
        path.unlink()
        path.write_text("mine")
    assert path.read_text() == "mine"


def test_a_path_that_is_too_long_is_told_in_one_line():
    with pytest.raises(OneLine, match="too long"), on_file(SHARED / ("s" * 120)):
        pass


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--uds-group", "root"], "which is not given"),
        (["--uds", "/tmp/tachograph-never", "--uds-group", "no-such-group"], "there is no group"),
    ],
)
def test_what_cannot_be_meant_is_wrong_usage(db, options, told):
    result = CliRunner().invoke(serve, ["--db", db, *options])
    assert (result.exit_code, told in result.stderr) == (2, True)
