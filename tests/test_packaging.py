"""The wheel: what is in it, and that it serves from an environment that knows nothing of this folder."""

import json
import os
import re
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parent.parent
READY_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Installed:
    """An environment that holds the wheel, and finds its dependencies where this process does."""

    bin: Path
    site_packages: Path
    before: frozenset[str]


def run(*command: str | Path, cwd: Path) -> str:
    """The command's output; its whole complaint when it fails."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHONPATH", "TACHOGRAPH"))}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("empty")
    run(sys.executable, "-m", "venv", "--without-pip", "env", cwd=folder)
    python = folder / "env/bin/python"
    (site_packages,) = folder.glob("env/lib/python*/site-packages")
    before = frozenset(path.name for path in site_packages.iterdir())
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel, cwd=folder)
    # A .pth inside a folder that a .pth adds is not read: the editable install of this folder stays out of it.
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return Installed(python.parent, site_packages, before | {"dependencies.pth"})


@dataclass(frozen=True)
class Served:
    """What a server that ran answered."""

    url: str

    def get(self, path: str) -> tuple[int, str, bytes]:
        try:
            with urllib.request.urlopen(self.url + path, timeout=5) as response:
                return response.status, response.headers["content-type"], response.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers["content-type"], error.read()


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


@pytest.fixture
def served(installed: Installed, tmp_path: Path) -> Iterator[Served]:
    db = f"sqlite:///{tmp_path}/runs.db"
    run(installed.bin / "tachograph", "migrate", "--db", db, cwd=tmp_path)
    port = free_port()
    command = [str(installed.bin / "tachograph"), "serve", "--db", db, "--port", str(port)]
    with (
        (tmp_path / "server.log").open("wb") as log,
        subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=subprocess.STDOUT) as server,
    ):
        try:
            give_up_at = time.monotonic() + READY_TIMEOUT_S
            while not accepts(port):
                waiting = server.poll() is None and time.monotonic() < give_up_at
                assert waiting, (tmp_path / "server.log").read_text()
                time.sleep(0.05)
            yield Served(f"http://127.0.0.1:{port}")
        finally:
            server.terminate()
            server.wait(timeout=10)


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_the_wheel_installs_the_three_packages_and_nothing_else_at_the_top(installed: Installed):
    now = {path.name for path in installed.site_packages.iterdir()}
    added = {re.sub(r"-[0-9.]+\.dist-info$", ".dist-info", name) for name in now - installed.before}
    assert added - {"__pycache__"} == {"harness", "ledger", "viewer", "tachograph.dist-info"}


@pytest.mark.parametrize(
    "pattern",
    [
        r"harness/py\.typed",
        r"ledger/py\.typed",
        r"viewer/py\.typed",
        r"viewer/templates/.+\.html",
        r"viewer/static/.+\.css",
        r"ledger/migrations/env\.py",
        r"ledger/migrations/versions/0001.*\.py",
        r"ledger/migrations/versions/0002.*\.py",
    ],
)
def test_the_wheel_carries_what_is_read_at_run_time(wheel: Path, pattern: str):
    assert [name for name in ZipFile(wheel).namelist() if re.fullmatch(pattern, name)] != []


def test_the_installed_packages_come_from_the_wheel_and_not_from_this_folder(installed: Installed, tmp_path: Path):
    where = "import harness, ledger, viewer; print(harness.__file__, ledger.__file__, viewer.__file__)"
    paths = run(installed.bin / "python", "-c", where, cwd=tmp_path).split()
    assert [Path(path).parent.parent for path in paths] == [installed.site_packages] * 3


def test_the_installed_command_knows_the_commands_of_every_package(installed: Installed, tmp_path: Path):
    listing = run(installed.bin / "tachograph", "--help", cwd=tmp_path)
    assert [name for name in ("migrate", "rebuild", "runs", "serve", "show") if f"  {name} " not in listing] == []


def test_the_installed_viewer_is_healthy_over_a_real_socket(served: Served):
    status, media_type, body = served.get("/healthz")
    assert (status, media_type.split(";")[0]) == (200, "application/json")
    assert json.loads(body)


def test_the_installed_viewer_shows_a_page_with_its_style(served: Served):
    status, media_type, page = served.get("/")
    assert (status, media_type.split(";")[0]) == (200, "text/html")
    styles = re.findall(r'href="(/static/[^"]+\.css[^"]*)"', page.decode())
    assert [served.get(style)[0] for style in styles] == [200] * len(styles)
    assert styles
