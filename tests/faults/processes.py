"""Starts the programs that are treated badly, and checks what a ledger holds afterwards."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

from ledger.bytes import body_hash, genesis_link, next_link

ROOT = Path(__file__).parent.parent.parent


def start(program: str, *args: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-m", "tests.faults.programs", program, *map(str, args)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def links_of(path: Path, run_id: str) -> list[str]:
    """The links of a run's events, recomputed from what is stored; every row is checked against it."""
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    (ledger_id,) = connection.execute("SELECT value FROM ledger_meta WHERE key = 'ledger_id'").fetchone()
    link = genesis_link(ledger_id, f"r:{run_id}")
    links: list[str] = []
    rows = connection.execute(
        "SELECT seq, recorded_us, body, body_hash, link FROM event WHERE run_id = ? ORDER BY seq", (run_id,)
    )
    for seq, recorded_us, body, stored_hash, stored_link in rows:
        assert seq == len(links) + 1
        link = next_link(link, seq, recorded_us, body_hash(body))
        assert (stored_hash, stored_link) == (body_hash(body), link)
        links.append(link.hex())
    head = connection.execute("SELECT head_seq, hex(head_link) FROM stream WHERE run_id = ?", (run_id,)).fetchone()
    assert head == ((len(links), links[-1].upper()) if links else None)
    positions = [row[0] for row in connection.execute("SELECT pos FROM event ORDER BY pos")]
    assert positions == list(range(1, len(positions) + 1))
    connection.close()
    return links
