"""Following a log in a file: what it costs, how it reads, and what it leaves behind."""

import asyncio
import time

import pytest

from ledger import Ledger, LedgerReader, LedgerUnreadable
from ledger.following.following import IDLE_S
from ledger.store.reads import SqliteReads
from tests.contract.test_following import all_wait, record, take
from tests.ledger.scripted import ScriptedRun
from tests.ledger.test_reader import explain


@pytest.fixture
def run():
    return ScriptedRun()


async def test_a_follower_of_a_file_that_is_replaced_is_told(ledger, path):
    async with await LedgerReader.open(path) as reader:
        waiting = asyncio.ensure_future(anext(reader.follow()))
        await asyncio.sleep(0.1)
        path.rename(path.with_suffix(".old"))
        with pytest.raises(LedgerUnreadable, match="replaced or removed"):
            async with asyncio.timeout(20):
                await waiting


async def test_a_watch_costs_next_to_nothing_while_nothing_happens(ledger, run):
    await record(ledger, run.start())
    after = await ledger.reader.last_leaf()
    waiting = [asyncio.ensure_future(anext(ledger.reader.follow(after))) for _ in range(200)]
    await all_wait(ledger, 200)
    await asyncio.sleep(0.5)
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    await asyncio.sleep(1.0)
    share = (time.process_time() - began_cpu_s) / (time.perf_counter() - began_s)
    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert share < 0.1


@pytest.mark.parametrize("read", ["log", "session", "run"])
async def test_a_page_of_the_log_is_read_in_its_own_order(ledger, path, read):
    statement = getattr(SqliteReads.leaf_queries, read)
    values = {"after": 5, "until": 9, "session_id": "s", "stream_id": "r:r", "limit": 5}
    plan = await explain(ledger, statement, values)
    assert not [line for line in plan if line.startswith("SCAN") or "TEMP B-TREE" in line], plan
    if read == "run":
        assert "stream_id=?" in plan[0]


async def test_followers_that_are_left_leave_nothing_behind(path, run, plain):  # CASES 37
    async with await Ledger.open(path) as ledger:
        await record(ledger, run.start())
        for pause_s in (0.0, 0.3):
            waiting = [asyncio.ensure_future(take(ledger.reader.follow(), 5)) for _ in range(50)]
            await asyncio.sleep(pause_s)
            for one in waiting:
                one.cancel()
            await asyncio.wait(waiting)
        async with asyncio.timeout(20):
            while asyncio.all_tasks() != {asyncio.current_task()}:
                await asyncio.sleep(IDLE_S / 10)
        assert ledger.reader._reads.engine.pool.checkedout() == 0
        assert ledger.reader._following.waiting_count == 0
        assert ledger._engine.bell._listening == {}
    assert plain().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
