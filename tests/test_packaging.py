"""The wheel: what is in it, and that it serves from an environment that knows nothing of this folder."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Installed:
    """An environment that holds the wheel, and finds its dependencies where this process does."""

    bin: Path
    site_packages: Path
    before: frozenset[str]


def environment() -> dict[str, str]:
    """This process's, less what would lead back to this folder or to another ledger."""
    led_astray_by = {"PYTHONPATH", "TACHOGRAPH_DB"}
    return {key: value for key, value in os.environ.items() if key not in led_astray_by}


def run(*command: str | Path, cwd: Path) -> str:
    """The command's output; its whole complaint when it fails."""
    done = subprocess.run(command, cwd=cwd, env=environment(), capture_output=True, text=True, check=False)
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


@pytest.fixture(scope="module")
def served(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the installed viewer, that serves a ledger of its own."""
    folder = tmp_path_factory.mktemp("served")
    db = f"sqlite:///{folder}/runs.db"
    run(installed.bin / "tachograph", "migrate", "--create", "--db", db, cwd=folder)
    command = [str(installed.bin / "tachograph"), "serve", "--db", db, "--port", "0"]
    with subprocess.Popen(
        command, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        try:
            assert server.stdout
            said = server.stdout.readline()
            url = re.search(r"http://127\.0\.0\.1:\d+", said)
            assert url, said
            yield url.group()
        finally:
            server.terminate()


def get(url: str) -> tuple[int, str, bytes]:
    """Status, media type and body, past any proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=10) as response:
        return response.status, response.headers.get_content_type(), response.read()


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
        r"viewer/locale/tachograph\.pot",
        r"ledger/migrations/env\.py",
        r"ledger/migrations/versions/0001.*\.py",
        r"ledger/migrations/versions/0002.*\.py",
        r"ledger/migrations/versions/0003.*\.py",
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
    commands = "erase migrate rebuild retention runs serve show system".split()
    assert [name for name in commands if f"  {name} " not in listing] == []


def test_the_installed_viewer_is_healthy_over_a_real_socket(served: str):
    status, media_type, body = get(f"{served}/healthz")
    assert (status, media_type) == (200, "application/json")
    assert json.loads(body)


def test_the_installed_viewer_shows_a_page_with_its_style(served: str):
    status, media_type, page = get(f"{served}/")
    assert (status, media_type) == (200, "text/html")
    styles = re.findall(r'rel="stylesheet" href="([^"]+)"', page.decode())
    assert [get(served + style)[1] for style in styles] == ["text/css"] * len(styles)
    assert styles
