"""A full disk: work is refused, nothing is half-written, and it goes on once there is room (SPEC E3, D1)."""

import asyncio
import contextlib
import os
import sqlite3
import subprocess
import threading
from pathlib import Path

import pytest

from harness import Harness, Limits, TerminationNotRecorded
from harness.errors import LedgerUnavailable
from ledger import Ledger, Signing, WriterLimits
from ledger.audit.errors import AnchorError
from ledger.audit.notes.notes import SigningKey
from ledger.audit.signing.anchor import Anchor
from ledger.audit.tree.merkle import leaf_hash
from tests.audit.trees import root_of
from tests.faults.processes import links_of
from tests.ledger.blank import blank_at
from tests.ledger.scripted import ScriptedRun, seal

DISK_BYTES = 6 * 1024 * 1024
PAGES_LEFT = 40
LIMITS = Limits(
    model_calls=10**9,
    tool_calls=10**9,
    per_tool_default=10**9,
    input_tokens=10**9,
    output_tokens=10**9,
    total_tokens=10**9,
    run_bytes=10**9,
)


class Disk:
    """A disk that can be filled: a small file system where one may be mounted, else a database that may not grow."""

    def __init__(self, folder: Path, may_mount: bool) -> None:
        self.folder = folder
        self.path = folder / "runs.db"
        self.is_mounted = may_mount and self._mount()

    def _mount(self) -> bool:
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(self.folder)]
        with contextlib.suppress(OSError):
            return os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
        return False

    async def fill(self, ledger: Ledger) -> None:
        if self.is_mounted:
            with contextlib.suppress(OSError), (self.folder / "filler").open("wb", buffering=0) as filler:
                while filler.write(b"x" * 4096):
                    pass
        else:
            await self._limit(ledger, f"(SELECT page_count + {PAGES_LEFT} FROM pragma_page_count)")

    async def empty(self, ledger: Ledger) -> None:
        if self.is_mounted:
            (self.folder / "filler").unlink()
        else:
            await self._limit(ledger, "1073741823")

    async def _limit(self, ledger: Ledger, pages: str) -> None:
        def limit(batch):
            (count,) = batch.connection.execute(f"SELECT {pages}").fetchone()
            batch.connection.execute(f"PRAGMA max_page_count = {count}")

        await asyncio.wrap_future(ledger.journal.run(limit))

    def unmount(self) -> None:
        if self.is_mounted:
            subprocess.run(["umount", str(self.folder)], check=True)


@pytest.fixture(params=[True, False], ids=["file system", "database"])
def disk(request, tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    disk = Disk(folder, may_mount=request.param)
    blank_at(disk.path)
    yield disk
    disk.unmount()


def fill_up(journal, run, resumes=False):
    """Submit until nothing more is taken; how many were, and why the next was not."""
    for number in range(10_000):
        content = seal(os.urandom(20_000).hex())
        event = run.transition(f"n{number}").events[0]
        future = journal.submit(run.submission(event, contents=(content,), resumes=resumes and number == 0))
        if future.exception() is not None:
            return number, future.exception()
    raise AssertionError("the disk is larger than it should be")


async def test_on_a_full_disk_an_append_fails_with_a_clear_error_and_works_again_with_room(disk):  # CASES 32
    async with await Ledger.open(disk.path) as ledger:
        run = ScriptedRun()
        ledger.journal.submit(run.start()).result()
        await disk.fill(ledger)
        taken, error = fill_up(ledger.journal, run)
        assert isinstance(error, LedgerUnavailable)
        assert "the disk is full" in str(error)
        assert ledger.journal.submit(run.transition("after")).exception() is not None
        trace = await ledger.reader.trace("session-1", "run-1")
        assert trace.run.event_count == 1 + taken
        await disk.empty(ledger)
        resumed = run.submission(*run.transition("again").events, resumes=True)
        assert ledger.journal.submit(resumed).result().first_seq == 2 + taken
        ledger.journal.submit(run.end()).result()
        assert (await ledger.rebuild()).is_clean
    assert len(links_of(disk.path, "run-1")) == 3 + taken


async def test_a_group_that_does_not_fit_on_the_disk_leaves_nothing_of_itself(disk):  # CASES 32
    async with await Ledger.open(disk.path) as ledger:
        runs = [ScriptedRun(f"run-{number}", writer_id=f"w{number}") for number in range(40)]
        for run in runs:
            ledger.journal.submit(run.start()).result()
        await disk.fill(ledger)
        gate = threading.Event()
        ledger.journal.run(lambda _: gate.wait(30))
        # Together they are larger than what is left of the disk, so the transaction breaks off in its midst.
        big = [(run, seal(os.urandom(60_000).hex())) for run in runs]
        futures = [
            ledger.journal.submit(run.submission(*run.transition("n").events, contents=(content,)))
            for run, content in big
        ]
        gate.set()
        outcomes = [future.exception() for future in futures]
        stored = [(await ledger.reader.trace("session-1", run.run_id)).run.event_count for run in runs]
        assert stored == [1 if outcome is not None else 2 for outcome in outcomes]
        assert any(isinstance(outcome, LedgerUnavailable) for outcome in outcomes)
        await disk.empty(ledger)
        ledger.journal.submit(runs[0].submission(*runs[0].transition("again").events, resumes=True)).result()
        assert (await ledger.rebuild()).is_clean
    for run in runs:
        links_of(disk.path, run.run_id)


async def test_a_checkpoint_for_which_there_is_no_room_loses_nothing_and_is_made_later(disk, caplog):  # CASES 32
    if not disk.is_mounted:
        return  # A database that may not grow has room for its own log.
    async with await Ledger.open(disk.path, limits=WriterLimits(rest_after_s=3600)) as ledger:
        run = ScriptedRun()
        ledger.journal.submit(run.start()).result()
        for number in range(20):
            content = seal(os.urandom(15_000).hex())
            ledger.journal.submit(run.submission(*run.transition(f"n{number}").events, contents=(content,))).result()
        await disk.fill(ledger)
        await asyncio.wrap_future(ledger.journal.call(ledger._engine.store.truncate_log))
        assert "could not be checkpointed: database or disk is full" in caplog.text
        assert (await ledger.reader.trace("session-1", "run-1")).run.event_count == 21
        await disk.empty(ledger)
        assert await asyncio.wrap_future(ledger.journal.call(ledger._engine.store.truncate_log))
        ledger.journal.submit(run.end()).result()
    assert not disk.path.with_name("runs.db-wal").exists()
    assert len(links_of(disk.path, "run-1")) == 22


async def test_on_a_full_disk_work_is_refused_and_the_run_says_that_it_is_not_recorded(disk):  # E3, D1
    invoked = []
    async with await Ledger.open(disk.path) as ledger:
        harness = Harness(ledger.journal, close_timeout_s=0.2)

        async def work():
            async with harness.run(session_id="session-1", run_id="run-1", limits=LIMITS, timeout_s=60) as run:
                await disk.fill(ledger)
                for _ in range(10_000):
                    text = os.urandom(20_000).hex()
                    await harness.tool(run, "note", lambda run, text: invoked.append(text), args={"text": text})

        with pytest.raises((TerminationNotRecorded, LedgerUnavailable)):
            await work()
        trace = await ledger.reader.trace("session-1", "run-1")
        assert trace.run.summary.tool_call_count == len(invoked)
        # A database that may not grow still has room for the end of the run, and a disk that is full has not.
        assert trace.run.summary.status == ("RUNNING" if disk.is_mounted else "FAILED")
        await disk.empty(ledger)
    async with await Ledger.open(disk.path) as ledger:
        trace = await ledger.reader.trace("session-1", "run-1")
        assert trace.run.summary.status == "FAILED"
        assert trace.run.outcome_reason == ("HARNESS_LOST" if disk.is_mounted else "LEDGER_UNAVAILABLE")
    links_of(disk.path, "run-1")


async def test_on_a_full_disk_nothing_is_signed_that_does_not_hold_and_with_room_all_of_it_is(disk):  # E9
    signing = Signing(key=SigningKey("log.example", bytes(32)), anchor=disk.folder / "anchor")
    async with await Ledger.open(disk.path, signing=signing) as ledger:
        run = ScriptedRun()
        ledger.journal.submit(run.start()).result()
        for number in range(300):
            last = ledger.journal.submit(run.transition(f"n{number}"))
        last.result()
        await disk.fill(ledger)
        fill_up(ledger.journal, run)
        # Where a note still fits on the last page, it may be signed.
        with contextlib.suppress(LedgerUnavailable, AnchorError):
            await ledger.checkpoint()
        await disk.empty(ledger)
        await ledger.checkpoint()
        links = await ledger.reader.on_tree(lambda tree: tree.links(0, 10_000))
    notes = [note.open([signing.key.verifier]) for note in Anchor(signing.anchor).notes()]
    assert notes[-1].size == len(links)
    assert all(note.root == root_of(map(leaf_hash, links[: note.size])) for note in notes)


async def test_a_ledger_on_a_full_disk_can_still_be_read_and_closed(disk):
    async with await Ledger.open(disk.path) as ledger:
        run = ScriptedRun()
        ledger.journal.submit(run.start()).result()
        await disk.fill(ledger)
        fill_up(ledger.journal, run)
        assert len((await ledger.reader.recent_runs()).rows) == 1
    connection = sqlite3.connect(disk.path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
