"""A ledger with some of everything, which was signed, and what was kept of that elsewhere."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

from harness.ids import RandomIds
from ledger import Ledger, Signing
from ledger.audit.signing.keyring import create_key
from ledger.cli.verify import verify as verify_command
from tests.ledger.scripted import ScriptedRun, seal

ORIGIN = "log.example/1"
ANSWER = "The disk is full."
"""What a scripted run says in the end."""


class Kept(NamedTuple):
    """Files out of reach of whoever owns the database."""

    checkpoint: Path
    anchor: Path
    key: Path

    def verify(self, url: object, *, by: str = "checkpoint") -> tuple[int, list[dict[str, Any]]]:
        """What the command says of a ledger: its exit code, and the findings."""
        args = ["--db", str(url), "--jobs", "1", f"--{by}", str(getattr(self, by)), "--key", str(self.key), "--json"]
        done = CliRunner().invoke(verify_command, args)
        return done.exit_code, json.loads(done.stdout)["findings"] if done.exit_code < 2 else []


async def record_signed(folder: Path, opened: Callable[..., Awaitable[Ledger]]) -> Kept:
    """Three runs in sessions of their own; the last one is also the end of the log."""
    kept = Kept(folder / "note", folder / "anchor", folder / "log.pub")
    async with await opened() as ledger:
        kept.key.write_text(f"{await create_key(ledger, folder / 'key', RandomIds(), origin=ORIGIN, actor='ops')}\n")
    async with await opened(signing=Signing(key=folder / "key", anchor=kept.anchor)) as ledger:
        for number in (1, 2):
            for submission in ScriptedRun(f"run-{number}", f"session-{number}", writer_id=f"w{number}").whole():
                ledger.journal.submit(submission).result()
        await ledger.checkpoint()
        await ledger.record_feedback("session-1", "run-1", useful=True, comment="it was the disk")
        await ledger.erase(run=("session-1", "run-1"), digest=seal(ANSWER).digest)
        run = ScriptedRun("run-3", "session-3", writer_id="w3")
        tool = run.attempt()
        for submission in (run.start(), tool.start("not kept", keep=False), tool.succeed(), run.end()):
            ledger.journal.submit(submission).result()
        kept.checkpoint.write_text((await ledger.checkpoint()).note)
    return kept
