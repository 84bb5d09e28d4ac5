"""What was agreed on how pages look, as files; `make snapshots` writes them down anew, with pictures to look at."""

import json
import os
from pathlib import Path
from typing import Any

PICTURES = Path(__file__).parents[2] / "build" / "screenshots"
RENEWED = os.environ.get("SNAPSHOTS") == "renew"


class Agreed:
    """One such file; while it is renewed nothing is agreed, and what is found is put together."""

    def __init__(self, name: str) -> None:
        self._path = Path(__file__).parent / name
        self.known: dict[str, Any] = json.loads(self._path.read_text()) if self._path.exists() and not RENEWED else {}

    def write(self) -> None:
        """Keep what is known now, where it is renewed."""
        if RENEWED:
            self._path.write_text(json.dumps(self.known, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def picture(name: str) -> Path:
    """Where a picture of that goes."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    return PICTURES / f"{name}.png"
