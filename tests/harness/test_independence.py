"""The core stands on the standard library and pydantic alone, and keeps nothing of its runs (SPEC H10)."""

import gc
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from harness import Harness
from tests.harness.fakes import HandJournal, limits, say

ROOT = Path(__file__).parents[2]
ADAPTERS = sorted(path.stem for path in (ROOT / "harness/adapters").glob("*.py") if path.stem != "__init__")

LOADED = """
import sys
before = set(sys.modules)
import harness, harness.adapters
loaded = {name.split(".")[0] for name in set(sys.modules) - before}
print(*sorted(name for name in loaded if not name.startswith("_sysconfigdata")))
"""

OF_PYDANTIC = {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"}
"""pydantic, and what it needs itself."""


def test_importing_the_harness_loads_the_standard_library_and_pydantic_only():  # H10
    done = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True
    )
    assert set(done.stdout.split()) - sys.stdlib_module_names == {"harness"} | OF_PYDANTIC


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_adapter_loads_its_client_only_when_it_is_used(adapter: str):  # H10
    lazily = LOADED.replace("harness.adapters", f"harness.adapters.{adapter}")
    done = subprocess.run(
        [sys.executable, "-c", lazily], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True
    )
    assert set(done.stdout.split()) - sys.stdlib_module_names == {"harness"} | OF_PYDANTIC


async def test_a_harness_keeps_nothing_of_a_run_that_ended(harness: Harness, journal: HandJournal):  # H10
    async with harness.run(session_id="s", limits=limits(), timeout_s=60) as run:
        await harness.tool(run, "say", say)
    live = weakref.ref(run.live)
    journal.submissions.clear()
    del run
    gc.collect()
    assert live() is None


async def test_a_run_that_was_opened_and_never_entered_does_nothing(harness: Harness, journal: HandJournal):
    harness.run(session_id="s", limits=limits(), timeout_s=60)
    assert (journal.submissions, journal.permits_open) == ([], 0)
