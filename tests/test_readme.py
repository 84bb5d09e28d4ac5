"""The front page does what it says."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_its_example_records_a_run_that_the_command_it_prints_can_show(tmp_path):
    example = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    program = tmp_path / "example.py"
    program.write_text(example[1])
    environment = {"PYTHONPATH": str(ROOT), "PATH": str(Path(sys.executable).parent)}
    ran = subprocess.run(
        [sys.executable, program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    shown = subprocess.run(
        [Path(sys.executable).parent / "tachograph", *ran.stdout.split()[1:]],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Why did the import stop?" in shown.stdout
    assert "oom-kill: killed process 812" in shown.stdout


def test_every_file_it_names_is_there():
    named = [*re.findall(r"\]\(([\w./-]+)\)", README), *re.findall(r"`(\w+/test_\w+\.py)`", README)]
    missing = [name for name in named if not (ROOT / name).exists() and not (ROOT / "tests" / name).exists()]
    assert len(named) > 10
    assert missing == []
