"""What checking a bundle of a thousand events takes beside hashing the same file once."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from time import perf_counter_ns

from harness import Harness, RunContext
from ledger import Ledger
from ledger.audit.bundle.verifying import verify_bundle
from ledger.audit.exporting.exporting import Vouched, export_run
from ledger.audit.notes.notes import SigningKey
from ledger.audit.signing.signing import Signing
from tests.bench.figure import Figure, figure, median_ms, timed_ns
from tests.bench.workload import open_run

KEY = SigningKey("bench.example/1", bytes(range(32)))
BOUNDARIES = 333
"""Three events each."""
OUTPUT_BYTES = {"64 bytes": 64, "64 KiB": 65_536}
GOAL = 3.0
"""What is done for each event and each content takes some 15 µs, most of it Python's own: beside hashing 0.4 MB in one
go that is a hundred times as much, beside hashing 22 MB less than as much again."""
REPEATS = 40


async def measure(folder: Path) -> list[Figure]:
    """A bundle whose contents are small, and one whose contents are much of it."""
    url = f"sqlite:///{folder / 'bundles.db'}"
    async with await Ledger.open(url, signing=Signing(key=KEY, every_s=3_600)) as ledger:
        harness = Harness(ledger.journal)
        runs = {label: await _run_of(harness, size) for label, size in OUTPUT_BYTES.items()}
        await ledger.checkpoint()
    paths = {label: folder / f"{run_id}.bundle" for label, run_id in runs.items()}
    for label, run_id in runs.items():
        await export_run(url, paths[label], "bench", run_id, vouched=Vouched(keys=[KEY.verifier]))
    return [_check_of(path, label) for label, path in paths.items()]


async def _run_of(harness: Harness, output_bytes: int) -> str:
    async def read(run: RunContext, *, number: int) -> str:
        blocks = (sha256(f"{number} {block}".encode()).hexdigest() for block in range(output_bytes // 64))
        return "".join(blocks)

    async with open_run(harness) as run:
        for number in range(BOUNDARIES):
            await harness.tool(run, "read", read, args={"number": number})
    return run.run_id


def _check_of(path: Path, label: str) -> Figure:
    checked_ns: list[int] = []
    hashed_ns: list[int] = []
    for _ in range(REPEATS):
        started_ns = perf_counter_ns()
        assert verify_bundle(path, [KEY.verifier]).is_right
        checked_ns.append(perf_counter_ns() - started_ns)
        hashed_ns.append(timed_ns(lambda: sha256(path.read_bytes()).digest()))
    size = f"{path.stat().st_size / 1e6:.1f} MB"
    return figure(
        f"check of a bundle of 1,000 events, {size}, outputs of {label}",
        "ms",
        median_ms(checked_ns),
        "reading that file and SHA-256 of it, once",
        median_ms(hashed_ns),
        goal=GOAL,
    )
