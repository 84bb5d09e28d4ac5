"""`python -m demo` as a user starts it, in a process of its own."""

import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from rich.console import Console

from demo.commands import perform
from demo.configuration import read_configuration
from demo.terminal import open_console

ROOT = Path(__file__).parents[2]
RUN_LINE = re.compile(
    r"^run sessionId=(\S+) runId=(\S+) status=(\S+) steps=(\d+) tools=(\d+) trace=(http://\S+)$", re.M
)
TIMEOUT_S = 150
FOREIGN = ("OPENAI_", "TACHOGRAPH_", "REDIS_")
"""What is set for whoever runs the tests is not set for the command."""


@pytest.fixture
def logs(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "app.log").write_text("app: error: out of memory\n")
    return tmp_path / "logs"


def environment():
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**kept, "PYTHONWARNINGS": "error"}


def demo(*args):
    command = [sys.executable, "-m", "demo", *map(str, args)]
    return subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )


def start(*args, **environ):
    command = [sys.executable, "-u", "-m", "demo", *map(str, args)]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment() | environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def read_until(process, pattern):
    for line in process.stdout:
        if found := re.search(pattern, line):
            return found
    raise AssertionError(process.stderr.read())


@pytest.mark.timeout(2 * TIMEOUT_S + 10)
def test_it_succeeds_twice_on_the_same_data_folder(tmp_path, logs):  # SPEC R9, R10
    seen = set()
    for _ in range(2):
        done = demo("--data", tmp_path / "data", "--logs", logs)
        assert (done.returncode, done.stderr) == (0, "")
        lines = RUN_LINE.findall(done.stdout)
        assert [(status, int(steps) > 0, int(tools) > 0) for _, _, status, steps, tools, _ in lines] == [
            ("SUCCESS", True, True)
        ] * 3
        assert lines[0][0] == lines[1][0] != lines[2][0]
        assert "app: error: out of memory" in done.stdout
        seen |= {line[1] for line in lines}
    assert len(seen) == 6
    with closing(sqlite3.connect(tmp_path / "data" / "runs.db")) as db:
        assert db.execute("SELECT count(*) FROM diagnosis_run WHERE status = 'SUCCESS'").fetchone() == (6,)
        # A checkpoint of everything was signed at the end (E9).
        assert (
            db.execute("SELECT max(size) FROM checkpoint").fetchone()
            == db.execute("SELECT count(*) FROM event").fetchone()
        )


def test_serve_prints_the_page_of_a_run_and_stops_when_told(tmp_path, logs):
    process = start("serve", "--data", tmp_path / "data", "--logs", logs)
    try:
        page = read_until(process, r"^(http://\S+/trace\?\S+)$").group(1)
        answer = httpx2.get(page, trust_env=False)
        assert answer.status_code == 200
        assert "Is any disk close to full" in answer.text
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 0
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(page, trust_env=False)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_demonstration_can_be_stopped_while_it_asks(tmp_path, logs, sent, code):
    process = start("--data", tmp_path / "data", "--logs", logs)
    try:
        url = read_until(process, r"app +(http://[^,]+),").group(1)
        process.send_signal(sent)
        assert process.wait(TIMEOUT_S) == code
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(url, trust_env=False)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("line", ["", "starting", "ledger", "model", "app"])
def test_ctrl_c_is_quiet_at_any_moment(tmp_path, logs, line):
    # As users have it: no code can keep Ctrl-C from coming between a socket and the block that closes it.
    process = start("--data", tmp_path / "data", "--logs", logs, PYTHONWARNINGS="error,ignore::ResourceWarning")
    try:
        if line:
            read_until(process, line)
        else:
            # The first thing that its own code does.
            wait_until_handled(process.pid)
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_S) == 130
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.communicate()


def wait_until_handled(pid):
    """Until the process answers SIGINT by itself: Python sets its own handler, ours comes with SIGTERM's."""
    until = time.monotonic() + 10
    while not int(re.search(r"^SigCgt:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.M)[1], 16) >> 14 & 1:
        assert time.monotonic() < until


@pytest.mark.parametrize(
    ("shell", "code", "told"),
    [
        ("{demo} >/dev/full", 1, "No space left on device"),
        ("{demo} >&-", 1, "standard output is closed"),
        ("{demo} --port 99999", 2, "must be a whole number from 0 to 65535"),
        ("{demo} --port=-1", 2, "must be a whole number from 0 to 65535"),
        ("{demo} replay", 2, "replay takes the run as SESSION/RUN, and no other command does"),
        ("{demo} serve s-1/r-1", 2, "replay takes the run as SESSION/RUN, and no other command does"),
        ("{demo} replay nonsense", 2, "replay takes the run as SESSION/RUN, and no other command does"),
        ("{demo} replay s-1/r-1", 2, "runs.db"),
        ("PYTHONIOENCODING=ascii {demo} --logs /nowhere", 2, "logs (flag --logs): there is no folder '/nowhere'"),
        ("OPENAI_BASE_URL=http://127.0.0.1:9/v1 {demo}", 2, "OPENAI_BASE_URL is set; set OPENAI_MODEL"),
    ],
)
def test_output_and_options_that_cannot_be_used_are_said_without_a_traceback(tmp_path, logs, shell, code, told):
    command = shell.format(demo=f"{sys.executable} -m demo --data {tmp_path}/data")
    done = subprocess.run(
        ["sh", "-c", command], cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    (problem,) = [line for line in done.stderr.splitlines() if "error: " in line]
    assert told in problem


@pytest.mark.parametrize(("columns", "width"), [(None, 100), ("60", 60), ("", 100), ("wide", 100)])
def test_what_is_piped_is_as_wide_as_columns_says(monkeypatch, columns, width):
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    assert open_console().width == width


@pytest.fixture
def perform_run(tmp_path, logs, capsys):
    """The same command in this process: its exit code, what it printed, and what went wrong."""

    def perform_run(environ=None, **flags):
        given = read_configuration({"data": str(tmp_path / "data"), "logs": str(logs), **flags}, environ or {})
        return perform("run", Console(width=100), given), *capsys.readouterr()

    return perform_run


def test_the_ledger_may_be_somewhere_else(perform_run, tmp_path):
    file = tmp_path / "elsewhere.db"
    code, _, problem = perform_run({"TACHOGRAPH_DB": f"sqlite:///{file}"})
    assert (code, problem) == (0, "")
    assert file.exists()
    assert not (tmp_path / "data" / "runs.db").exists()


def test_a_file_that_is_no_ledger_is_said_in_one_line(perform_run, tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("my notes\n" * 100)
    code, _, problem = perform_run(db=str(file))
    assert code == 1
    assert len(problem.strip().splitlines()) == 1
    assert file.read_text() == "my notes\n" * 100


def test_without_a_single_log_file_the_demonstration_still_holds(perform_run, logs):
    (logs / "app.log").unlink()
    code, out, problem = perform_run()
    assert (code, problem) == (0, "")
    assert "→ executor → semantic_guard → evidence_guard → composer" in out


def test_a_port_that_is_taken_is_said_in_one_line(perform_run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, problem = perform_run(port=str(port))
    assert code == 1
    assert problem.startswith(f"error: port {port} of 127.0.0.1 is in use; name another one")


def test_a_demonstration_that_does_not_hold_is_no_success(perform_run):
    # Nobody listens there: the answers are degraded, and the check of the machine fails.
    code, _, problem = perform_run({"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_MODEL": "m"})
    assert code == 1
    assert len(problem.splitlines()) == 1
    assert re.match(r"error: the check of the machine: .*MODEL_FAILED.*the model gave no answer to \w+: Conn", problem)


def test_what_is_set_and_by_whom_is_printed_without_secrets(tmp_path, logs):
    file = tmp_path / "demo.toml"
    file.write_text('port = 8321\nopenai_model = "of-the-file"\nopenai_api_key = "sesame-1"\n')
    environ = {"OPENAI_MODEL": "of-the-environment", "REDIS_URL": "redis://me:sesame-2@127.0.0.1/0?password=sesame-3"}
    command = [sys.executable, "-m", "demo", "config", "--config", str(file), "--logs", str(logs)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment() | environ, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = {line.split()[0]: line.split(maxsplit=1)[1] for line in done.stdout.splitlines()}
    assert told["logs"].endswith("flag --logs")
    assert re.fullmatch(r"of-the-environment +environment OPENAI_MODEL", told["openai_model"])
    assert re.fullmatch(rf"8321 +file {file}", told["port"])
    assert re.fullmatch(r"data +default", told["data"])
    assert told["redis_url"].startswith("redis://***@127.0.0.1/0?*** ")
    assert "sesame" not in done.stdout


def test_a_key_and_a_password_are_neither_printed_nor_stored(perform_run, tmp_path, caplog):
    environ = {
        "OPENAI_BASE_URL": "http://me:sesame-1@127.0.0.1:9/v1",
        "OPENAI_MODEL": "m",
        "OPENAI_API_KEY": "sesame-2",
        "REDIS_URL": "redis://:sesame-3@127.0.0.1:9/0",
    }
    _, out, problem = perform_run(environ)
    assert "sesame" not in out + problem + caplog.text
    stored = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert stored
    assert not [path for path in stored if b"sesame" in path.read_bytes()]
