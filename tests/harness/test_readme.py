"""The package's README does what it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import harness

ROOT = Path(__file__).parents[2]
README = (ROOT / "harness/README.md").read_text()
BLOCKS = re.findall(r"```(python)?\n(.*?)```", README, re.DOTALL)
CITED = re.findall(r"`((?:harness|property|typing)/test_\w+\.py)::(test_\w+)`", README)
OPEN_ROOMS = ("block", "boundary", "budget", "concurrency", "hooks", "live", "sync")
"""Packages whose modules the README names one by one."""


@pytest.mark.parametrize(
    ("example", "shown"), [(example, shown) for (_, example), (_, shown) in zip(BLOCKS[::2], BLOCKS[1::2], strict=True)]
)
def test_each_example_runs_and_prints_what_is_shown(example: str, shown: str):
    done = subprocess.run([sys.executable, "-c", example], cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr) == (shown, "")


@pytest.mark.parametrize(("path", "name"), CITED, ids=lambda part: part)
def test_the_test_beside_each_guarantee_exists(path: str, name: str):
    assert re.search(rf"^(async )?def {name}\(", (ROOT / "tests" / path).read_text(), re.MULTILINE)


def test_each_requirement_on_the_harness_has_its_guarantee():
    wanted = [f"H{number}" for number in range(1, 11)] + [f"D{number}" for number in range(1, 14)]
    guaranteed = set(re.findall(r"\b[HD]\d+\b", README.split("## Guarantees")[1].split("\n## ")[0]))
    assert [requirement for requirement in wanted if requirement not in guaranteed] == []


def test_every_module_has_its_room():
    modules = {path.stem for path in (ROOT / "harness").glob("*.py")} - {"__init__"}
    packages = {path.parent.name for path in (ROOT / "harness").glob("*/__init__.py")}
    rooms = README.split("## The rooms")[1]
    inner = {path.stem for name in OPEN_ROOMS for path in (ROOT / "harness" / name).glob("*.py")} - {"__init__"}
    named = set(re.findall(r"`(\w+)/?`", rooms))
    assert modules | packages | inner == named - {"Harness"}


def test_the_public_names_are_there():
    assert [name for name in harness.__all__ if not hasattr(harness, name)] == []
