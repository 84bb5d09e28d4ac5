"""A type checker sees through the harness to what is called, whichever of the two checks (SPEC D11)."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from harness.engine import Engine
from harness.options import Settings

ROOT = Path(__file__).parents[2]

CHECKERS = {
    "mypy": ["mypy", "--strict", "tests/typing/typed_harness.py"],
    "pyright": ["basedpyright", "--pythonpath", sys.executable],
}
PASSED = {
    "mypy": "Success: no issues found in 1 source file\n",
    "pyright": "0 errors, 0 warnings, 0 notes\n",
}


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_strict_type_checker_sees_the_signature_and_the_result_of_what_is_called(checker):  # D11
    command = [sys.executable, "-m", *CHECKERS[checker]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=150)
    assert (done.stdout, done.returncode) == (PASSED[checker], 0)


def test_every_setting_of_a_harness_is_declared_for_type_checkers():
    # The script is for those alone who execute a recorded run again.
    settings = {field.name for field in dataclasses.fields(Engine)} - {"journal", "script"}
    assert set(Settings.__annotations__) == settings
