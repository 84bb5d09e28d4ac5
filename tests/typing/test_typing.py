"""A type checker sees through the harness to the tool that is called (SPEC D11)."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_strict_type_checker_sees_the_signature_and_the_result_of_what_is_called():  # D11
    command = [sys.executable, "-m", "mypy", "--strict", "tests/typing/typed_harness.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=55)
    assert (done.stdout, done.returncode) == ("Success: no issues found in 1 source file\n", 0)
