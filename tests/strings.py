"""Extracts what the viewer's pages say into the catalogue that translators begin with: `make strings`."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
CATALOGUE = ROOT / "viewer/locale/tachograph.pot"


def extract(into: Path) -> None:
    """Every message, the same for the same sources: with the files that say it, and neither lines nor dates."""
    shape = ["--omit-header", "--sort-output", "--add-location=file"]
    source = ["--mapping-file=pyproject.toml", "--keyword=found_for:1,2", f"--output-file={into}", "viewer"]
    command = [sys.executable, "-m", "babel.messages.frontend", "--quiet", "extract", *shape, *source]
    subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    CATALOGUE.parent.mkdir(exist_ok=True)
    extract(CATALOGUE)
