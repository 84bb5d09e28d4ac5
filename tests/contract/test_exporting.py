"""A run, or a period, is exported as the ledger has it in one moment, and both verifiers find it right (SPEC E9)."""

import tracemalloc
from hashlib import sha256

import pytest

from harness.errors import InvalidInput
from ledger import LedgerUnreadable, RunNotFound, Signing
from ledger.audit.bundle import independent
from ledger.audit.bundle import manifest as names
from ledger.audit.bundle.verifying import verify_bundle
from ledger.audit.errors import InvalidCheckpoint, NotEnclosed
from ledger.audit.exporting.exporting import Vouched, export_period, export_run
from ledger.audit.notes.notes import SigningKey
from ledger.errors import LedgerDamaged
from tests.audit.bundles import OTHER_KEY, members_of
from tests.contract.test_checkpoints import lay_open
from tests.ledger.scripted import ScriptedRun

KEY = SigningKey("example.org/ledger-1", b"\x05" * 32)
VOUCHED = Vouched(keys=[KEY.verifier])
DAY_S = 86_400
START_US = 1_800_000_000_000_000


@pytest.fixture
async def ledger(database, clock):
    async with await database.open(wall_clock=clock, signing=Signing(key=KEY, every_s=DAY_S)) as opened:
        yield opened


@pytest.fixture
async def recorded(ledger):
    """Runs that take turns, one of which goes on; a comment, a digest alone, and a content that was erased."""
    runs = [ScriptedRun(f"run-{number}", "session-1", writer_id=f"w{number}") for number in (1, 2, 3)]
    for turns in zip(*(run.whole() for run in runs), strict=True):
        submit(ledger, *turns)
    opened = ScriptedRun("run-4", "session-2", writer_id="w4")
    attempt = opened.attempt("model", "planner")
    submit(ledger, opened.start(), attempt.start("only its digest", keep=False), attempt.succeed("y" * 9_000))
    await ledger.record_feedback("session-1", "run-1", useful=True, comment="it was the disk")
    await ledger.erase(run=("session-1", "run-3"))
    await ledger.checkpoint()
    return opened


def submit(ledger, *submissions):
    for future in [ledger.journal.submit(submission) for submission in submissions]:
        future.result()


@pytest.fixture
def keys_file(tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"{KEY.verifier}\n")
    return path


async def exported(database, folder, run_id="run-1", session_id="session-1", **settings):
    """A run's bundle, which both verifiers find right."""
    path = folder / f"{run_id}.bundle"
    made = await export_run(database.url, path, session_id, run_id, **({"vouched": VOUCHED} | settings))
    assert (made.path, made.size_bytes) == (path, path.stat().st_size)
    assert made.verified == verify_bundle(path)
    assert independent.main(str(path)) == 0
    return path


async def test_a_run_is_exported_as_it_is_stored(database, recorded, plain, tmp_path):
    path = await exported(database, tmp_path)
    found = verify_bundle(path, [KEY.verifier])
    assert (found.is_right, found.is_key_trusted, found.row_count) == (True, True, 4)
    assert found.content_counts == {"stored": 7}
    assert found.manifest.tree.covered_count == found.manifest.event_count
    bodies = plain().execute("SELECT body FROM event WHERE stream_id = 'r:run-1' ORDER BY seq").fetchall()
    lines = members_of(path)[names.EVENTS].splitlines()
    assert [line.split(b" ", 4)[4] for line in lines] == [bytes(body) for (body,) in bodies]
    assert b"it was the disk" in members_of(path).values()


async def test_what_is_not_there_is_said_to_be_withheld_erased_or_a_digest_only(database, recorded, tmp_path):
    withheld = await exported(database, tmp_path, with_content=False)
    assert verify_bundle(withheld, [KEY.verifier]).content_counts == {"withheld": 7}
    # With its quotation mark, since a hash or a signature may spell the letters.
    assert b'"OOM' not in b"".join(members_of(withheld).values())
    erased = await exported(database, tmp_path, "run-3")
    assert verify_bundle(erased, [KEY.verifier]).content_counts == {"erased": 6}
    digest_only = await exported(database, tmp_path, "run-4", "session-2")
    assert verify_bundle(digest_only, [KEY.verifier]).content_counts == {"stored": 2, "digest_only": 1}


async def test_what_came_after_the_last_checkpoint_is_said_not_to_be_covered(database, ledger, recorded, tmp_path):
    # The end of a run before had one asked for, which would come later otherwise.
    await ledger.checkpoint()
    submit(ledger, recorded.transition("planner"))
    found = verify_bundle(await exported(database, tmp_path, "run-4", "session-2"), [KEY.verifier])
    assert (found.manifest.event_count, found.manifest.tree.covered_count) == (6, 5)
    await ledger.checkpoint()
    (tmp_path / "again").mkdir()
    found = verify_bundle(await exported(database, tmp_path / "again", "run-4", "session-2"), [KEY.verifier])
    assert (found.manifest.event_count, found.manifest.tree.covered_count) == (6, 6)


@pytest.mark.parametrize(
    "vouched", [Vouched(), Vouched(keys=[OTHER_KEY.verifier]), Vouched(keys=[KEY.verifier], origin="x")]
)
async def test_where_no_key_has_signed_anything_there_is_no_checkpoint(database, recorded, tmp_path, vouched):
    path = await exported(database, tmp_path, vouched=vouched)
    assert verify_bundle(path).manifest.tree is None
    assert verify_bundle(path, [KEY.verifier]).finding.problem == "not_signed"


async def test_a_checkpoint_that_was_kept_is_shown_to_be_of_the_same_log(database, ledger, tmp_path, recorded):
    kept = await ledger.checkpoint()
    submit(ledger, recorded.transition("planner"))
    await ledger.checkpoint()
    path = await exported(database, tmp_path, "run-4", "session-2", vouched=Vouched(keys=VOUCHED.keys, kept=kept))
    assert verify_bundle(path, [KEY.verifier], kept).is_right
    assert verify_bundle(path).manifest.tree.earlier_size == kept.claim.size
    newest = await ledger.checkpoint()
    with pytest.raises(InvalidCheckpoint, match="says nothing"):
        verify_bundle(await exported(database, tmp_path), [KEY.verifier], newest)


async def test_another_sessions_run_is_no_run_and_nothing_is_left(database, recorded, tmp_path):  # R4
    for session_id, run_id in (("session-2", "run-1"), ("session-1", "run-9")):
        with pytest.raises(RunNotFound):
            await export_run(database.url, tmp_path / "bundle", session_id, run_id)
    with pytest.raises(InvalidInput):
        await export_run(database.url, tmp_path / "bundle", "session-1", "../run")
    assert list(tmp_path.glob("*bundle*")) == []


async def test_nothing_is_overwritten(database, recorded, tmp_path):
    (tmp_path / "run.bundle").write_bytes(b"mine")
    with pytest.raises(LedgerUnreadable, match="nothing is overwritten"):
        await export_run(database.url, tmp_path / "run.bundle", "session-1", "run-1")
    assert (tmp_path / "run.bundle").read_bytes() == b"mine"


async def test_what_would_not_pass_does_not_leave_the_house(database, ledger, recorded, plain, tmp_path):
    outsider = lay_open(plain, "content")
    outsider.execute("UPDATE diagnosis_run SET step_count = 9 WHERE run_id = 'run-1'")
    outsider.execute("UPDATE content SET data = ? WHERE stream_id = 'r:run-2' AND size_bytes = 17", (b"x" * 17,))
    for run_id, named in (("run-1", "row_differs"), ("run-2", "content_differs")):
        with pytest.raises(LedgerDamaged, match=named):
            await export_run(database.url, tmp_path / "bundle", "session-1", run_id, vouched=VOUCHED)
    assert list(tmp_path.glob("*bundle*")) == []


async def test_a_big_run_is_exported_in_memory_for_a_page(database, ledger, tmp_path):  # CASES 40
    run = ScriptedRun("run-big")
    submit(ledger, run.start())
    for number in range(16):
        attempt = run.attempt("tool", "query_logs")
        text = "".join(sha256(b"%d %d" % (number, at)).hexdigest() for at in range(8_000))
        submit(ledger, attempt.start(f"input {number}"), attempt.succeed(text))
    for first in range(0, 600, 100):
        submit(ledger, *(run.transition(f"n{number}") for number in range(first, first + 100)))
    submit(ledger, run.end())
    await ledger.checkpoint()
    tracemalloc.start()
    made = await export_run(database.url, tmp_path / "big.bundle", "session-1", "run-big", vouched=VOUCHED)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert made.size_bytes > 4_500_000
    assert peak_bytes < 4_500_000, peak_bytes


@pytest.fixture
async def three_days(database, clock, tmp_path):
    """A run of each day, a checkpoint after each; one that its process lost, and one that goes on."""
    for day in (1, 2, 3):
        async with await database.open(wall_clock=clock, signing=Signing(key=KEY, every_s=DAY_S)) as ledger:
            for submission in ScriptedRun(f"run-{day}", writer_id=f"w{day}").whole():
                submit(ledger, submission)
            if day == 2:
                submit(ledger, ScriptedRun("run-lost", writer_id="w5").start())
            clock.advance(60)
        clock.advance(DAY_S - 60)
    async with await database.open(wall_clock=clock) as ledger:
        submit(ledger, ScriptedRun("run-open", writer_id="w4").start())
        yield ledger


def day(number):
    """From its beginning to its end."""
    return START_US + (number - 1) * DAY_S * 1_000_000, START_US + number * DAY_S * 1_000_000


async def period(database, path, from_us, to_us, **settings):
    made = await export_period(database.url, path, from_us, to_us, vouched=Vouched(keys=VOUCHED.keys, **settings))
    assert made.verified == verify_bundle(path)
    assert independent.main(str(path)) == 0
    return verify_bundle(path, [KEY.verifier])


async def test_a_period_has_every_event_between_checkpoints_that_enclose_it(database, three_days, tmp_path):
    found = await period(database, tmp_path / "first", *day(1))
    assert ([run.run_id for run in found.runs], found.manifest.tree.earlier_size) == (["run-1"], 0)
    found = await period(database, tmp_path / "second", *day(2))
    assert [(run.run_id, run.outcome) for run in found.runs] == [("run-2", "SUCCESS"), ("run-lost", None)]
    assert found.manifest.tree.earlier_size > 0
    found = await period(database, tmp_path / "all", day(1)[0], day(3)[1])
    assert [run.run_id for run in found.runs] == ["run-1", "run-2", "run-lost", "run-3"]


async def test_a_period_in_which_nothing_happened_is_shown_to_be_empty(database, three_days, tmp_path):
    begin, end = day(2)
    found = await period(database, tmp_path / "night", begin + 3_600_000_000, end)
    assert (found.is_right, found.manifest.event_count, found.runs) == (True, 0, ())


async def test_a_period_that_no_checkpoint_encloses_is_refused(database, three_days, tmp_path):
    with pytest.raises(NotEnclosed, match="sign one"):
        await period(database, tmp_path / "bundle", *day(4))
    with pytest.raises(NotEnclosed):
        await export_period(database.url, tmp_path / "bundle", *day(1), vouched=Vouched())
    with pytest.raises(InvalidInput):
        await period(database, tmp_path / "bundle", day(2)[1], day(2)[0])
    assert list(tmp_path.glob("*bundle*")) == []


async def test_runs_that_are_open_or_were_ended_by_recovery_are_in_their_period(database, three_days, clock, tmp_path):
    await period(database, tmp_path / "before", *day(2))
    found = await period(database, tmp_path / "ended", *day(3))
    assert [(run.run_id, run.reason) for run in found.runs] == [("run-lost", "HARNESS_LOST"), ("run-3", "COMPLETED")]
    async with await database.open(wall_clock=clock, signing=Signing(key=KEY, every_s=DAY_S)) as ledger:
        await ledger.checkpoint()
    found = await period(database, tmp_path / "open", *day(4))
    assert [(run.run_id, run.outcome) for run in found.runs] == [("run-open", None)]
