"""`kill -9` at every named moment: afterwards nothing acknowledged is missing, and nothing is half done."""

import shutil
import signal
import sqlite3

import pytest

from ledger import Ledger, LedgerReader
from ledger.audit.signing.anchor import Anchor
from ledger.audit.tree.merkle import leaf_hash
from ledger.copies.backup import back_up, restore
from ledger.failpoints import POINTS
from ledger.migrate import ensure_current, lock_of
from tests.audit.trees import root_of
from tests.faults import programs
from tests.faults.processes import links_of_all, start
from tests.ledger.blank import blank_at
from tests.ledger.scripted import ScriptedRun
from tests.ledger.tables import dump
from tests.ledger.test_backup import list_erasures

MIGRATING = [("migration step", 1), ("migration step", 3), ("before migration commit", 1)]
"""Points, and how many times each is passed before."""
LATE = dict.fromkeys(("before begin", "after begin", "between rows", "before commit", "after commit"), 40)
LATE["before acknowledgement"] = 30
"""Points that are reached again and again."""
ELSEWHERE = ("migration", "statement", "decided again")
"""Of migrations, of PostgreSQL, and of restoring: those have tests of their own."""
SELDOM = [point for point in POINTS if point not in LATE and not any(words in point for words in ELSEWHERE)]


@pytest.fixture(scope="module")
def left_behind(tmp_path_factory):
    """A ledger of a process that has gone: two runs are open, and the row of a third was tampered with."""
    path = blank_at(tmp_path_factory.mktemp("faults") / "left.db")

    async def leave():
        async with await Ledger.open(path) as ledger:
            for number in range(2):
                run = ScriptedRun(f"left-{number}", writer_id=f"l{number}")
                ledger.journal.submit(run.start()).result()
                ledger.journal.submit(run.attempt().start("words of the dead")).result()
            for submission in ScriptedRun("left-done", writer_id="l3").whole():
                ledger.journal.submit(submission).result()

    programs.run(leave)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE diagnosis_run SET step_count = 99 WHERE run_id = 'left-done'")
    connection.commit()
    connection.close()
    return path


def die_at(path, point, times):
    """What it had acknowledged when it died."""
    program = start(programs.die_at, str(path), point, times)
    said = []
    try:
        while True:
            said.append(program.pipe.recv())
    except (EOFError, OSError):
        pass
    program.process.join(30)
    program.pipe.close()
    assert program.process.exitcode == -signal.SIGKILL, f"{point} was not reached {times} times: {said[-1:]}"
    return said


def rows_of_others(connection, run_id):
    return {table: [row for row in rows if run_id not in row] for table, rows in dump(connection).items()}


async def check(path, acknowledged, tampered):
    """Everything that must hold after a death at whatever moment."""
    links = links_of_all(path)
    assert all(links[f"r:{run_id}"][seq - 1] == link for run_id, seq, link in acknowledged)
    async with await Ledger.open(path) as ledger:
        assert (await ledger.recover()).ended == ()
        connection = sqlite3.connect(path)
        ends = connection.execute(
            "SELECT stream.run_id, count(event.seq), max(event.seq) = head_seq, owner_id FROM stream"
            " LEFT JOIN event ON event.stream_id = stream.stream_id AND type = 'run.terminated'"
            " WHERE kind = 'run' GROUP BY stream.stream_id"
        ).fetchall()
        assert all(end[1] == 1 and end[3] is None for end in ends)
        live = rows_of_others(connection, tampered)
        assert set((await ledger.rebuild()).runs_changed) <= {tampered}
        assert (await ledger.rebuild()).is_clean
        assert rows_of_others(connection, tampered) == live
        connection.close()
        if any(run_id == "run-1" for run_id, *_ in ends):
            await ledger.erase(session="session-1")
        stage, problem = (await ledger.finish_erasures())[1:]
        assert (stage, problem) in ((None, None), ("FILE", None))
    await check_signed(path)
    after = links_of_all(path)
    assert all(after[stream][: len(known)] == known for stream, known in links.items())
    assert b"words of run-1" not in path.read_bytes()
    assert sorted(file.name for file in path.parent.iterdir()) == [path.name, f"{path.name}.lock"]
    return ends


async def check_signed(path):
    """All that was signed is of this log, which can be signed again (SPEC E9)."""
    signing = programs.signing_of(path)
    async with await Ledger.open(path, signing=signing) as ledger:
        await ledger.checkpoint()
        links = await ledger.reader.on_tree(lambda tree: tree.links(0, 100_000))
    for note in Anchor(signing.anchor).notes():
        signed = note.open([signing.key.verifier])
        assert signed.root == root_of(map(leaf_hash, links[: signed.size]))


@pytest.mark.parametrize(("point", "times"), [*((point, 1) for point in SELDOM), *LATE.items()])
async def test_a_death_at_any_named_moment_leaves_all_that_was_acknowledged_and_nothing_half_done(
    left_behind, tmp_path, point, times
):  # CASES 31, E3, E5, E7
    path = shutil.copy(left_behind, tmp_path / "runs.db")
    acknowledged = die_at(path, point, times)
    ends = await check(path, acknowledged, tampered="left-done")
    assert {f"left-{number}" for number in range(2)} <= {run_id for run_id, *_ in ends}
    assert len(acknowledged) > (5 if point in LATE else -1)


async def test_a_restore_that_dies_as_it_erases_again_leaves_nothing_and_can_be_repeated(tmp_path):  # D19
    async with await Ledger.open(blank_at(tmp_path / "runs.db")) as ledger:
        for submission in (run := ScriptedRun()).whole():
            ledger.journal.submit(submission).result()
        await back_up(tmp_path / "runs.db", tmp_path / "backup.db")
        await ledger.erase(run=(run.session_id, run.run_id))
    erasures = await list_erasures(tmp_path / "runs.db", tmp_path / "erasures.jsonl")
    target = tmp_path / "restored.db"
    names = [str(path) for path in (tmp_path / "backup.db", target, tmp_path / "erasures.jsonl")]
    program = start(programs.restore_and_die, *names, "erasures decided again")
    program.process.join(30)
    assert program.process.exitcode == -signal.SIGKILL
    assert not target.exists()
    assert (await restore(tmp_path / "backup.db", target, erasures=erasures)).erasures_repeated == 1
    async with await LedgerReader.open(target) as reader:
        assert (await reader.trace(run.session_id, run.run_id)).answer.state == "erased"


@pytest.mark.parametrize("revision", [None, "0001"])
@pytest.mark.parametrize(("point", "times"), MIGRATING)
async def test_a_death_in_the_middle_of_a_migration_leaves_the_ledger_as_it_was(tmp_path, point, times, revision):
    path = tmp_path / "runs.db"
    if revision is not None:
        lock = lock_of(path)
        ensure_current(path, lock, revision=revision)
        lock.close()
    assert die_at(path, point, times) == []
    connection = sqlite3.connect(path)
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    versions = connection.execute("SELECT * FROM alembic_version").fetchall() if tables else []
    connection.close()
    assert versions == ([] if revision is None else [(revision,)])
    async with await Ledger.open(path) as ledger:
        for submission in ScriptedRun().whole():
            ledger.journal.submit(submission).result()
        assert (await ledger.rebuild()).is_clean
    assert len(links_of_all(path)["r:run-1"]) == 13
