"""The bytes of a ledger as anybody finds them who opens its files without SQLite."""

from __future__ import annotations

from pathlib import Path


def found_in(path: Path, *needles: bytes) -> dict[str, list[bytes]]:
    """Which of the needles are in which of the ledger's files."""
    files = [Path(f"{path}{suffix}") for suffix in ("", "-wal", "-shm", "-journal")]
    found = {
        file.name: [needle for needle in needles if needle in file.read_bytes()] for file in files if file.exists()
    }
    return {name: needles for name, needles in found.items() if needles}
