"""What every test shares: settings of libraries, and the browser to drive."""

import os
import shutil

import pytest
from hypothesis import settings

# Before anything imports LangGraph: nothing of a run leaves the machine.
os.environ["LANGSMITH_TRACING"] = "false"

# The time-out is pytest's; in CI the examples are the same in every run.
settings.register_profile("tachograph", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("tachograph")


@pytest.fixture(scope="session")
def chromium_path() -> str | None:
    """The system's browser, but none of a snap's, which cannot be driven; None stands for Playwright's own."""
    found = (shutil.which(name) for name in ("chromium", "google-chrome", "google-chrome-stable"))
    return next((path for path in found if path and not path.startswith("/snap/")), None)
