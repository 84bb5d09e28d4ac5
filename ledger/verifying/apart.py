"""Verifies a ledger in a process of its own, which stands back where others want the processor.

So a server goes on answering, and appending, while millions of events are looked at. The process is told the ledger's
address on its input, where no list of processes shows it, and ends when that input does: with whoever started it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from ledger.errors import LedgerError
from ledger.verifying.findings import Finding, Tail, VerifyReport
from ledger.verifying.verify import verify

NICENESS = 10
"""How far it stands back, as `nice` counts."""
LINE_MAX_BYTES = 4_000_000
"""More than a report with all findings that are told one by one."""

Progress = Callable[[int, int], None]


class VerificationFailed(LedgerError):
    """The ledger could not be verified to the end, so that nothing is known of it."""

    code = "verification_failed"


async def verify_apart(url: str | Path, on_progress: Progress = lambda _done, _of: None) -> VerifyReport:
    """As `verify`, in another process; `VerificationFailed` where that came to no end. Cancelled, it is killed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "ledger.verifying.apart",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=LINE_MAX_BYTES,
    )
    assert process.stdin is not None, "it is a pipe"
    assert process.stdout is not None, "it is a pipe"
    try:
        process.stdin.write(f"{url}\n".encode())
        await process.stdin.drain()
        async for line in process.stdout:
            said = orjson.loads(line)
            if "report" in said:
                return _report_of(said["report"])
            if "error" in said:
                raise VerificationFailed(said["error"])
            on_progress(said["done"], said["of"])
        raise VerificationFailed("the process that verified has ended before it was done")
    finally:
        process.stdin.close()
        if process.returncode is None:
            process.kill()
        await process.wait()


def _report_of(said: dict[str, Any]) -> VerifyReport:
    findings = tuple(Finding(**each) for each in said.pop("findings"))
    return VerifyReport(findings=findings, tail=Tail(**said.pop("tail")), **said)


def _say(**said: Any) -> None:
    sys.stdout.buffer.write(orjson.dumps(said, option=orjson.OPT_APPEND_NEWLINE))
    sys.stdout.buffer.flush()


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


def _main() -> None:
    os.nice(NICENESS)
    url = sys.stdin.buffer.readline().decode().rstrip("\n")
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        report = asyncio.run(verify(url, lambda done, of: _say(done=done, of=of)))
    except LedgerError as error:
        _say(error=str(error))
    else:
        _say(report=dataclasses.asdict(report))


if __name__ == "__main__":
    _main()
