"""What proof costs: checkpoints beside appends, the first look at a log, and an inclusion proof of millions."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sqlite3
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path
from statistics import median
from time import perf_counter_ns, process_time_ns
from typing import NamedTuple

import sqlalchemy as sa

from harness.concurrency.waiting import result_of
from ledger import Ledger, LedgerReader, Signing
from ledger.audit.notes.notes import SigningKey
from ledger.audit.signing.stored import StoredTree
from ledger.audit.tree.growing import GrowingTree
from ledger.audit.tree.merkle import leaf_hash, verify_inclusion
from tests.bench.appends import submissions
from tests.bench.figure import Figure, figure, timed_ns

KEY = SigningKey("bench.example", bytes(32))
ROUNDS = 15
RUNS = 50
BOUNDARIES = 120
MAY_COST = 1.05

LEAVES = 5_000_000
PIECE = 65_536
PROOFS = 50
READS_MAX = 19
OPEN_TO_ALL = ("event_insert", "tile_insert")
PUT_TILE = "INSERT INTO tile (level, tile_index, root, hashes) VALUES (?, ?, ?, ?)"
PUT_EVENT = (
    "INSERT INTO event (pos, stream_id, seq, event_id, type, version, occurred_us, recorded_us, body, body_hash, link)"
    " VALUES (?, 'sys', ?, ?, 'x', 1, 1, 1, x'00', ?, ?)"
)
READ_LINKS = "SELECT link FROM event ORDER BY pos"


class _Took(NamedTuple):
    """Of an event."""

    cpu_us: float
    wall_us: float


async def measure(folder: Path) -> list[Figure]:
    return [*await _beside_appends(folder), *await _of_millions(folder)]


async def _beside_appends(folder: Path) -> list[Figure]:
    """The same appends with a key and without, round by round in either order, so that both meet the same noise."""
    on_path, off_path = folder / "signed.db", folder / "unsigned.db"
    signing = Signing(key=KEY, anchor=folder / "anchor", every_s=1)
    rounds: list[tuple[_Took, _Took]] = []
    async with await Ledger.open(on_path, signing=signing) as on, await Ledger.open(off_path) as off:
        for round_no in range(ROUNDS):
            turns = (on, off) if round_no % 2 else (off, on)
            took = {ledger: await _took_each(ledger, f"{round_no}") for ledger in turns}
            rounds.append((took[on], took[off]))
        size = (await on.checkpoint()).claim.size
        counted = on.measures().signing
    assert counted is not None, "there is a key"
    assert counted.signed_count > ROUNDS, "checkpoints were signed meanwhile"
    first_us, plain_us = [], []
    for _ in range(3):
        first_us.append(await _first_look_us(on_path, signing) / size)
        plain_us.append(timed_ns(partial(_hash_links, on_path)) / 1_000 / size)
    off_cpu_us, off_us = (median(off[at] for _, off in rounds) for at in range(2))
    # Both halves of a round met much the same noise.
    cpu, wall = (median(on[at] / off[at] for on, off in rounds) for at in range(2))
    name, reference = "appends while checkpoints are signed", "without a key"
    return [
        # How long it takes swings with disk and neighbours by more than may be added: the goal is on the work done.
        figure(f"{name}, processor", "us", cpu * off_cpu_us, reference, off_cpu_us, MAY_COST),
        figure(f"{name}, time", "us", wall * off_us, reference, off_us),
        figure(
            "first checkpoint of an open log, per event",
            "us",
            median(first_us),
            "reading and hashing links",
            median(plain_us),
        ),
    ]


async def _took_each(ledger: Ledger, prefix: str) -> _Took:
    work = [list(submissions(f"{prefix}-{number}", BOUNDARIES)) for number in range(RUNS)]
    count = sum(len(submission.events) for run in work for submission in run)
    gc.collect()
    began_ns, cpu_began_ns = perf_counter_ns(), process_time_ns()

    async def record(number: int) -> None:
        for submission in work[number]:
            future = ledger.journal.submit(submission)
            if submission.is_awaited:
                await result_of(future)

    await asyncio.gather(*map(record, range(RUNS)))
    wall_ns = perf_counter_ns() - began_ns
    if ledger.measures().signing is not None:
        # Nothing of it is left to the other half of the round.
        await ledger.checkpoint()
    cpu_ns = process_time_ns() - cpu_began_ns
    return _Took(cpu_ns / count / 1_000, wall_ns / count / 1_000)


async def _first_look_us(path: Path, signing: Signing) -> float:
    async with await Ledger.open(path) as ledger:
        began_ns = perf_counter_ns()
        await ledger._begin_signing(path, signing)
        await ledger.checkpoint()
        return (perf_counter_ns() - began_ns) / 1_000


def _hash_links(path: Path) -> None:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    for (link,) in connection.execute(READ_LINKS):
        leaf_hash(link)
    connection.close()


async def _of_millions(folder: Path) -> list[Figure]:
    path = folder / "millions.db"
    async with await Ledger.open(path):
        pass
    root = await asyncio.to_thread(_make_tree, path)
    reads: list[int] = []
    took_ns: list[int] = []
    plain_ns: list[int] = []
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    async with await LedgerReader.open(path) as reader:
        for number in range(PROOFS):
            index = number * (LEAVES // PROOFS) + number
            with _counted() as statements:
                began_ns = perf_counter_ns()
                proof = await reader.on_tree(partial(_prove, index))
                took_ns.append(perf_counter_ns() - began_ns)
            reads.append(sum(statement.startswith("SELECT") for statement in statements))
            assert verify_inclusion(leaf_hash(_link(index)), index, LEAVES, proof, root), "the proof holds"
            plain = "SELECT hashes FROM tile WHERE level = 0 AND tile_index = ?"
            plain_ns.append(timed_ns(lambda: connection.execute(plain, (index // 256 // 2,)).fetchone()))  # noqa: B023
    connection.close()
    name = f"inclusion proof of {LEAVES:,} events"
    return [
        figure(f"{name}, reads of the database", "reads", max(reads), "reads of the whole", LEAVES, at_most=READS_MAX),
        figure(name, "ms", median(took_ns) / 1e6, "one tile, plain sqlite3", median(plain_ns) / 1e6),
    ]


def _prove(index: int, tree: StoredTree) -> list[bytes]:
    return tree.inclusion_path(index, LEAVES)


def _link(index: int) -> bytes:
    return sha256(index.to_bytes(8, "big")).digest()


def _make_tree(path: Path) -> bytes:
    """Tiles of so many events, and those events that no tile has; the root."""
    tree = GrowingTree()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for name in OPEN_TO_ALL:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        for first in range(0, LEAVES, PIECE):
            leaves = [leaf_hash(_link(index)) for index in range(first, min(first + PIECE, LEAVES))]
            connection.executemany(PUT_TILE, tree.extend(leaves))
        rows = (
            (index + 1, index, f"w:{index}", _link(index), _link(index))
            for index in range(LEAVES - LEAVES % 256, LEAVES)
        )
        connection.executemany(PUT_EVENT, rows)
        connection.execute("COMMIT")
    return tree.root()


@contextlib.contextmanager
def _counted() -> Iterator[list[str]]:
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        statements.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    yield statements
    sa.event.remove(sa.Engine, "before_cursor_execute", note)
