"""What a server and its ledger count can be read by Prometheus, and names no run and no session."""

import asyncio
from collections import defaultdict

import httpx2
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families

from harness.errors import HarnessError
from ledger import Ledger, Signing
from ledger.audit.notes.notes import SigningKey
from ledger.store.postgres.sequencing import Sequencer
from tests.ledger.blank import blank_at
from tests.ledger.scripted import ScriptedRun
from viewer.app import create_app
from viewer.metrics import Metrics


@pytest.fixture
async def ledger(tmp_path):
    async with await Ledger.open(blank_at(tmp_path / "runs.db")) as ledger:
        yield ledger


@pytest.fixture
async def client(ledger):
    app = create_app(ledger.reader, metrics=Metrics(ledger.reader, ledger.measures))
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


async def samples(client):
    response = await client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    found = defaultdict(dict)
    for family in text_string_to_metric_families(response.text):
        for sample in family.samples:
            found[sample.name][tuple(sorted(sample.labels.items()))] = sample.value
    return found


async def test_appends_are_counted_by_latency_batch_and_failure(ledger, client):
    run = ScriptedRun()
    for submission in (run.start(), run.end()):
        ledger.journal.submit(submission).result()
    late = ledger.journal.submit(run.transition("planner")).exception()
    ledger.journal.submit(ScriptedRun("run-2", writer_id="w2").start()).result()
    # The last one is counted after it was answered.
    await ledger.open_session("session-1")
    found = await samples(client)
    assert isinstance(late, HarnessError)
    assert found["tachograph_append_seconds_count"][()] == 3
    assert 0 < found["tachograph_append_seconds_sum"][()] < 60
    buckets = [found["tachograph_append_seconds_bucket"][(("le", le),)] for le in ("0.0005", "0.1", "5.0", "+Inf")]
    assert buckets == sorted(buckets)
    assert buckets[-1] == 3
    assert found["tachograph_batch_appends_sum"][()] == 4
    assert found["tachograph_appends_failed_total"] == {(("code", late.code),): 1}
    assert found["tachograph_runs_open"][()] == 1
    assert found["tachograph_last_leaf"][()] == 3
    assert found["tachograph_wal_bytes"][()] > 0


async def test_what_waits_is_told(ledger, client):
    permits = [ledger.journal.request_permit(1.0).result() for _ in range(3)]
    found = await samples(client)
    assert found["tachograph_permits_granted"][()] == 3
    assert found["tachograph_queue_appends"][()] == found["tachograph_permits_waiting"][()] == 0
    for permit in permits:
        permit.release()
    assert (await samples(client))["tachograph_permits_granted"][()] == 0


async def test_requests_are_counted_by_route_and_never_by_what_they_name(ledger, client):
    for submission in ScriptedRun("run-secret", "session-secret").whole():
        ledger.journal.submit(submission).result()
    await client.get("/api/diagnosis/session-secret/trace?runId=run-secret")
    await client.get("/made/up/by/anybody")
    await client.request("BREW", "/")
    text = (await client.get("/metrics")).text
    assert "secret" not in text
    assert "made" not in text
    assert "BREW" not in text
    found = (await samples(client))["tachograph_viewer_requests_total"]
    routes = {dict(labels)["route"]: dict(labels)["status"] for labels in found}
    assert routes["/metrics"] == "200"
    assert next(status for route, status in routes.items() if "trace" in route) == "200"
    assert "other" in routes


async def test_a_scraper_that_asks_for_openmetrics_gets_it(client):
    response = await client.get("/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"})
    assert response.headers["content-type"].startswith("application/openmetrics-text")
    assert list(open_metrics(response.text))


async def test_a_server_that_only_reads_has_no_figures_of_a_writer(ledger):
    app = create_app(ledger.reader, metrics=Metrics(ledger.reader))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1") as client:
        found = await samples(client)
    assert "tachograph_append_seconds_count" not in found
    assert found["tachograph_runs_open"][()] == 0


async def test_checkpoints_are_counted_where_they_are_signed(tmp_path):  # E9
    key = SigningKey("log.example", bytes(32))
    async with await Ledger.open(blank_at(tmp_path / "runs.db"), signing=Signing(key=key)) as ledger:
        ledger.journal.submit(ScriptedRun().start()).result()
        size = (await ledger.checkpoint()).claim.size
        app = create_app(ledger.reader, metrics=Metrics(ledger.reader, ledger.measures))
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1") as client:
            found = await samples(client)
    assert found["tachograph_checkpoint_events"][()] == size
    assert found["tachograph_checkpoints_signed_total"][()] >= 1
    assert found["tachograph_checkpoint_time_seconds"][()] > 0


async def test_followers_are_told_by_name_with_how_far_they_are_behind(ledger, client):  # E8
    async def send(events):
        pass

    run = ScriptedRun()
    ledger.journal.submit(run.start()).result()
    following = asyncio.ensure_future(ledger.followers.deliver("export", send))
    async with asyncio.timeout(20):
        while await ledger.followers.places() != {"export": 1}:
            await asyncio.sleep(0.01)
    following.cancel()
    await asyncio.wait([following])
    ledger.journal.submit(run.transition("late")).result()
    assert (await samples(client))["tachograph_follower_lag_events"] == {(("follower", "export"),): 1}


async def test_what_has_no_place_in_the_public_order_is_told(postgres_url, monkeypatch):  # E8
    monkeypatch.setattr(Sequencer, "start", lambda self: None)
    async with await Ledger.open(postgres_url) as ledger:
        ledger.journal.submit(ScriptedRun().start()).result()
        app = create_app(ledger.reader, metrics=Metrics(ledger.reader, ledger.measures))
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1") as client:
            found = await samples(client)
    assert found["tachograph_unsequenced_events"][()] == 2
    assert 0 <= found["tachograph_unsequenced_seconds"][()] < 60
