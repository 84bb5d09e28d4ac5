"""Reading an SQLite file: by its indexes, without a trace, and only the file that was opened."""

import sqlite3

import pytest

from ledger import Ledger, LedgerReader, LedgerUnreadable
from ledger.reading import query
from ledger.store import probe, reads
from tests.ledger.blank import blank_at
from tests.ledger.scripted import ScriptedRun


@pytest.fixture
def recorded(ledger):
    for submission in ScriptedRun().whole():
        ledger.journal.submit(submission).result()
    return ledger


@pytest.mark.parametrize(
    "read",
    ["SESSION", "RUN_STREAM", "RUN", "STEPS", "TOOLS", "CONTENTS", "EVENTS"],
)
async def test_every_read_goes_by_an_index(recorded, path, read):
    statement = getattr(query, read)
    values = {"session_id": "s", "run_id": "r", "stream_id": "r:r", "after_no": 0, "after_seq": 0, "limit": 5}
    plan = await explain(recorded, statement, values | {"digests": ["a", "b"]})
    assert not [line for line in plan if line.startswith("SCAN")], plan
    assert not [line for line in plan if "TEMP B-TREE" in line], plan


@pytest.mark.parametrize("read", ["RECENT_RUNS", "RECENT_RUNS_AFTER", "SESSION_RUNS", "SESSION_RUNS_AFTER"])
async def test_every_page_of_runs_is_read_in_the_order_of_an_index(recorded, path, read):
    values = {"session_id": "s", "run_id": "r", "created_us": 5, "limit": 5}
    plan = await explain(recorded, getattr(query, read), values)
    assert "diagnosis_run_by_" in plan[0]
    assert not [line for line in plan if "TEMP B-TREE" in line], plan


async def explain(ledger, statement, values):
    used = {name: value for name, value in values.items() if f":{name}" in str(statement) or name == "digests"}
    compiled = statement.params(**used).compile(
        dialect=ledger.reader._reads.engine.dialect, compile_kwargs={"literal_binds": True}
    )
    with ledger.reader._reads.engine.connect() as connection:
        rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled}")
        return [row[3] for row in rows]


async def test_a_file_that_breaks_while_it_is_read_is_an_error_of_ours(recorded, path):
    await recorded.close()
    async with await LedgerReader.open(path) as reader:
        connection = sqlite3.connect(path)
        connection.execute("DROP TABLE chat_session")
        connection.commit()
        connection.close()
        with pytest.raises(LedgerUnreadable):
            await reader.session("session-1")


async def test_where_a_reader_can_make_no_side_file_it_needs_none_and_sees_what_others_write(path, monkeypatch):
    async with await Ledger.open(path) as ledger:
        ledger.journal.submit(ScriptedRun().start()).result()
    monkeypatch.setattr(probe, "can_share", lambda _: False)
    monkeypatch.setattr(reads, "can_share", lambda _: False)
    before = sorted(path.parent.iterdir())
    async with await LedgerReader.open(path) as reader:
        assert len((await reader.recent_runs()).rows) == 1
        assert sorted(path.parent.iterdir()) == before
        async with await Ledger.open(path) as ledger:
            ledger.journal.submit(ScriptedRun("run-2").start()).result()
            assert len((await reader.recent_runs()).rows) == 2
        assert len((await reader.recent_runs()).rows) == 2
        assert sorted(path.parent.iterdir()) == before


async def test_a_reader_says_so_once_its_file_was_removed_or_replaced(recorded, path, tmp_path):
    async with await LedgerReader.open(path) as reader:
        assert (await reader.recent_runs()).rows
        path.rename(tmp_path / "elsewhere.db")
        with pytest.raises(LedgerUnreadable, match="was replaced or removed"):
            await reader.recent_runs()
        blank_at(path)
        with pytest.raises(LedgerUnreadable, match="was replaced or removed"):
            await reader.recent_runs()
