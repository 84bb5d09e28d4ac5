"""What is told at `/metrics` is what a real Prometheus reads there."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ledger import Ledger
from tests.ledger.scripted import ScriptedRun
from tests.servers.prometheus import scraping

ROOT = Path(__file__).parents[2]
SERVE = [sys.executable, "-c", "from viewer.serve import serve; serve()"]


@pytest.fixture
async def db(tmp_path):
    """A ledger with a run that goes on, one that has ended, and a follower that has seen only the first."""
    seen = asyncio.Event()

    async def send(events):
        seen.set()

    async with await Ledger.open(tmp_path / "runs.db") as ledger:
        ledger.journal.submit(ScriptedRun().start()).result()
        following = asyncio.ensure_future(ledger.followers.deliver("export", send))
        await asyncio.wait_for(seen.wait(), 20)
        while "export" not in await ledger.followers.places():
            await asyncio.sleep(0.01)
        following.cancel()
        await asyncio.wait([following])
        for submission in ScriptedRun("run-2", writer_id="w2").whole():
            ledger.journal.submit(submission).result()
        yield f"sqlite:///{tmp_path / 'runs.db'}"


@pytest.fixture
def address(db):
    """Of `tachograph serve`."""
    serving = subprocess.Popen([*SERVE, "--db", db, "--port", "0"], cwd=ROOT, text=True, stdout=subprocess.PIPE)
    assert serving.stdout is not None
    found = re.search(r"http://(127\.0\.0\.1:\d+)/", serving.stdout.readline())
    assert found
    yield found[1]
    serving.terminate()
    serving.communicate(timeout=20)


async def test_a_prometheus_reads_the_values_of_a_served_ledger(db, address, tmp_path):
    async with await Ledger.open(db) as ledger:
        vitals = await ledger.reader.vitals()
    with scraping(address, tmp_path) as prometheus:
        (up,) = prometheus.query("up").values()
        (runs_open,) = prometheus.query("tachograph_runs_open").values()
        (last_leaf,) = prometheus.query("tachograph_last_leaf").values()
        ((labels, lag),) = prometheus.query("tachograph_follower_lag_events").items()
        scrapes = prometheus.query('tachograph_viewer_requests_total{route="/metrics",status="200"}')
        median = prometheus.query("histogram_quantile(0.5, tachograph_viewer_request_seconds_bucket)")
    assert (up, runs_open, last_leaf) == (1, 1, vitals.last_leaf)
    assert (("follower", "export") in labels, lag) == (True, vitals.follower_lags["export"])
    assert lag > 0
    assert list(scrapes.values()) >= [1]
    assert list(median.values()) >= [0]
