"""What rebuilding and folding do without the lock of an SQLite file."""

from ledger import Ledger
from ledger.store import heads
from ledger.store.lock import FileLock
from tests.ledger.scripted import ScriptedRun
from tests.ledger.tables import dump


async def test_a_rebuild_of_what_is_right_needs_no_lock(path):
    async with await Ledger.open(path, lock_timeout_s=0.05) as ledger:
        for submission in ScriptedRun().whole():
            ledger.journal.submit(submission).result()
        other = FileLock(path.with_name("runs.db.lock"))
        other.acquire(1.0)
        assert (await ledger.rebuild()).is_clean
        other.close()


async def test_an_annotation_of_a_long_run_folds_it_before_the_lock_is_taken(path, monkeypatch):
    run = ScriptedRun()
    submissions = (run.start(), *(run.transition(f"n{number}") for number in range(50)), run.end())
    async with await Ledger.open(path) as ledger:
        for submission in submissions:
            ledger.journal.submit(submission).result()
    async with await Ledger.open(path) as ledger:
        folded = []
        stored_pages = heads.stored_pages

        def counted(connection, *place):
            for page in stored_pages(connection, *place):
                folded.append((connection.in_transaction, len(page)))
                yield page

        monkeypatch.setattr(heads, "stored_pages", counted)
        monkeypatch.setattr(heads, "PAGE_EVENTS", 20)
        await ledger.record_feedback("session-1", "run-1", useful=True)
        assert folded == [(False, 20), (False, 20), (False, 12)]


async def test_a_text_in_the_place_of_a_number_is_found_and_made_right(ledger, plain):
    for submission in ScriptedRun().whole():
        ledger.journal.submit(submission).result()
    before = dump(plain())
    plain().execute("UPDATE agent_step SET duration_us = duration_us || 'x'")
    assert (await ledger.rebuild()).runs_changed == ("run-1",)
    assert dump(plain()) == before
