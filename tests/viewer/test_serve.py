"""`tachograph serve`, as a process."""

import re
import signal
import socket
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner

from ledger import Ledger
from viewer.cli import GROUP, build
from viewer.serve import serve

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-c", "from viewer.serve import serve; serve()"]


@pytest.fixture
async def db(tmp_path) -> str:
    path = tmp_path / "runs.db"
    async with await Ledger.open(f"sqlite:///{path}") as ledger:
        await ledger.open_session("s-1")
    return f"sqlite:///{path}"


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_serves_and_ends_in_peace(db, stop):
    process = subprocess.Popen(
        [*COMMAND, "--db", db, "--port", "0"], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert url, line
        assert httpx2.get(f"{url[0]}api/chat/session/s-1").json()["data"]["sessionId"] == "s-1"
        process.send_signal(stop)
        _, errors = process.communicate(timeout=20)
        assert (process.returncode, errors) == (0, "")
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("options", "code"), [([], "read_only"), (["--writable"], "run_not_found")])
def test_it_writes_only_where_it_was_told_to(db, options, code):
    command = [*COMMAND, "--db", db, "--port", "0", *options]
    process = subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.stdout is not None
        url = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())
        assert url
        feedback = {"sessionId": "s-1", "runId": "run-1", "useful": True}
        assert httpx2.post(f"{url[0]}api/feedback", json=feedback).json()["code"] == code
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", "169.254.1.1"])
def test_it_refuses_an_address_that_others_could_reach_where_there_are_no_tokens(host, db):
    result = CliRunner().invoke(serve, ["--db", db, "--host", host])
    assert result.exit_code == 2
    assert "--allow-host" in result.stderr
    result = CliRunner().invoke(serve, ["--db", db, "--host", host, "--allow-host", "runs.example", "--writable"])
    assert result.exit_code == 2
    assert "tachograph token create" in result.stderr


def test_it_refuses_any_host_name_where_there_are_no_tokens_and_names_that_no_host_has(db):
    for name, why in (
        ("*", "token create"),
        ("runs.example:80", "without scheme"),
        ("http://runs.example", "and port"),
    ):
        result = CliRunner().invoke(serve, ["--db", db, "--allow-host", name])
        assert result.exit_code == 2
        assert why in result.stderr


@pytest.fixture
async def with_token(db) -> tuple[str, str]:
    async with await Ledger.open(db) as ledger:
        return db, (await ledger.tokens.make("ops-1", ["read"]))[1]


def test_a_ledger_with_tokens_is_not_served_where_who_looks_cannot_be_recorded(with_token):
    result = CliRunner().invoke(serve, ["--db", with_token[0]])
    assert result.exit_code == 2
    assert "serve it with --writable" in result.stderr


def test_with_tokens_it_listens_everywhere_under_the_names_it_was_given(with_token):
    db, bearer = with_token
    options = ["--host", "0.0.0.0", "--allow-host", "runs.example", "--writable"]
    process = subprocess.Popen(
        [*COMMAND, "--db", db, "--port", "0", *options], cwd=ROOT, text=True, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        port = re.search(r"http://0\.0\.0\.0:(\d+)/", process.stdout.readline())
        assert port
        url = f"http://127.0.0.1:{port[1]}/api/chat/session/s-1"
        headers = {"Host": "runs.example"}
        assert httpx2.get(url, headers=headers).status_code == 401
        assert httpx2.get(url, headers=headers | {"Authorization": f"Bearer {bearer}"}).status_code == 200
        assert httpx2.get(url, headers={"Host": "elsewhere.example"}).status_code == 400
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()


def test_a_port_in_use_is_told_in_one_line(db):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = subprocess.run(
            [*COMMAND, "--db", db, "--port", port], cwd=ROOT, text=True, capture_output=True, check=False
        )
    assert result.returncode == 1
    assert result.stderr == f"Error: cannot listen on 127.0.0.1 port {port}: Address already in use\n"


@pytest.mark.parametrize("content", [None, b"not a ledger " * 99], ids=["missing", "foreign"])
def test_a_file_that_is_no_ledger_is_told_in_one_line_and_left_alone(tmp_path, content):
    path = tmp_path / "runs.db"
    if content is not None:
        path.write_bytes(content)
    command = build(lambda: [EntryPoint("serve", "viewer.serve:serve", GROUP)])
    result = CliRunner().invoke(command, ["serve", "--db", f"sqlite:///{path}"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert str(path) in result.stderr
    assert (path.read_bytes() if path.exists() else None) == content


def test_without_a_ledger_it_is_wrong_usage(monkeypatch):
    monkeypatch.delenv("TACHOGRAPH_DB", raising=False)
    result = CliRunner().invoke(serve, [])
    assert result.exit_code == 2
    assert "TACHOGRAPH_DB" in result.stderr
