"""The audit pages: what vouches for the ledger, what was decided about it, and what can be carried away."""

import asyncio
import io
import re
import sqlite3
import time
import zipfile
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import httpx2
import pytest

from ledger import Ledger
from ledger.audit.bundle.verifying import verify_bundle
from ledger.audit.signing.keyring import default_key_path, public_keys
from ledger.audit.signing.receipts import Receipt
from ledger.verifying import verify
from ledger.verifying.telling import lines_of
from tests.ledger.scripted import ScriptedRun
from tests.viewer.audited import ORIGIN, record_audited
from tests.viewer.served import client_of
from viewer.audit.history import SystemHistory
from viewer.audit.source import LedgerAddress

ANSWERED = "sessionId=s-1&runId=r-answered"
LATE = "sessionId=s-1&runId=r-late"
PAGES = ["/audit", "/audit?list=erasures", "/audit/verification", f"/audit/runs?{ANSWERED}", f"/audit/runs?{LATE}"]


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("audited") / "runs.db"
    asyncio.run(record_audited(path))
    return path


@pytest.fixture(scope="module")
def client(path) -> Iterator[httpx2.Client]:
    with client_of(path, address=LedgerAddress(path)) as client:
        yield client


def words(text: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub("<[^>]+>", " ", text)))


def ended(client) -> dict:
    for _ in range(600):
        found = client.get("/api/audit/verification").json()["data"]
        if found["last"] is not None and found["underWay"] is None:
            return found["last"]
        time.sleep(0.05)
    raise AssertionError("the verification never ended")


def test_the_latest_checkpoint_and_the_tail_beyond_it_are_told(client):
    said = words(client.get("/audit").text)
    data = client.get("/api/audit").json()["data"]
    assert data["checkpoint"]["origin"] == ORIGIN
    assert data["checkpoint"]["size"] + data["tailEventCount"] == data["eventCount"]
    assert f"{data['tailEventCount']} events came since, for which nothing vouches yet." in said
    assert data["checkpoint"]["root"] in said
    assert data["checkpoint"]["keyId"] in said
    assert data["checkpoint"]["note"].splitlines()[-1] in unescape(client.get("/audit").text)


def test_what_was_decided_is_told_by_kind(client):
    data = client.get("/api/audit").json()["data"]
    assert [each["type"] for each in data["keys"]] == ["key.created"]
    assert data["erasures"][0]["facts"]["of_run_id"] == "r-erased"
    assert data["erasures"][0]["finished"]["contentCount"] > 0
    said = words(client.get("/audit?list=erasures").text)
    assert "s-1/r-erased" in said
    assert "finished" in said
    assert client.get("/audit?list=nothing").status_code == 400


def test_the_ledgers_own_events_come_by_page(client):
    events = client.get("/api/audit/events").json()["data"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert client.get(f"/api/audit/events?after={len(events)}").json()["data"] == []


def test_names_that_people_chose_are_text(client):  # CASES 46
    text = client.get("/audit?list=erasures").text
    assert "<b>privacy" not in text
    assert "&lt;b&gt;privacy" in text


def test_a_run_is_proven_to_be_in_the_log(client, path):
    text = client.get(f"/audit/receipt?{ANSWERED}").text
    receipt = Receipt.parse(text)
    checkpoint = receipt.verify(public_keys(default_key_path(path)), origin=ORIGIN)
    page = client.get(f"/audit/runs?{ANSWERED}").text
    assert "Included" in page
    hashes = re.findall(r'<span class="mono">([0-9a-f]{64})</span>', page)
    assert hashes[-1] == checkpoint.root.hex()
    assert {each.hex() for each in receipt.proof.path} <= set(hashes)
    data = client.get(f"/api/audit/runs?{ANSWERED}").json()["data"]
    assert data["receipt"]["text"] == text


def test_of_a_run_that_no_checkpoint_covers_nothing_is_claimed(client):
    said = words(client.get(f"/audit/runs?{LATE}").text)
    assert "No checkpoint covers an event of this run" in said
    assert "Included" not in said
    assert client.get(f"/api/audit/runs?{LATE}").json()["data"]["receipt"] is None
    assert client.get(f"/audit/receipt?{LATE}").status_code == 409


@pytest.mark.parametrize("address", ["/audit/runs", "/api/audit/runs", "/audit/receipt", "/audit/bundle"])
def test_a_foreign_run_and_an_unknown_one_get_the_same_answer(client, address):  # SPEC R4
    foreign = client.get(f"{address}?sessionId=s-2&runId=r-answered")
    unknown = client.get(f"{address}?sessionId=s-1&runId=r-nowhere")
    assert foreign.status_code == unknown.status_code == 404
    assert foreign.text == unknown.text
    assert client.get(f"{address}?sessionId=s-1").status_code == 400


def test_a_bundle_is_what_the_command_would_have_made(client, path, tmp_path):
    answer = client.get(f"/audit/bundle?{ANSWERED}")
    assert answer.headers["content-disposition"] == 'attachment; filename="r-answered.bundle"'
    assert "etag" not in answer.headers
    file = tmp_path / "run.bundle"
    file.write_bytes(answer.content)
    report = verify_bundle(file, public_keys(default_key_path(path)))
    assert report.is_right
    assert report.signed_by
    assert report.content_counts["stored"] > 0


def test_a_bundle_may_go_without_contents(client, tmp_path):
    file = tmp_path / "run.bundle"
    file.write_bytes(client.get(f"/audit/bundle?{ANSWERED}&content=withheld").content)
    report = verify_bundle(file)
    assert report.is_right
    assert "stored" not in report.content_counts
    assert client.get(f"/audit/bundle?{ANSWERED}&content=some").status_code == 400


def test_what_was_erased_is_in_no_bundle(client):
    data = client.get("/audit/bundle?sessionId=s-1&runId=r-erased").content
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert not [name for name in archive.namelist() if name.startswith("content/")]
        assert b"whatever it was" not in b"".join(archive.read(name) for name in archive.namelist())


def test_nothing_is_verified_before_somebody_asks(path):
    with client_of(path, address=LedgerAddress(path)) as client:
        assert "Nobody has asked this server" in client.get("/audit/verification").text
        assert client.get("/api/audit/verification").json()["data"] == {"underWay": None, "last": None}


def test_a_verification_says_what_the_command_says(client, path):
    answer = client.post("/audit/verification")
    assert (answer.status_code, answer.headers["location"]) == (303, "/audit/verification")
    last = ended(client)
    assert last["report"]["right"]
    said = words(client.get("/audit/verification").text)
    assert "It holds" in said
    for line in lines_of(asyncio.run(verify(path))):
        assert line in said


async def test_appends_go_on_while_the_ledger_is_verified(path, tmp_path):  # E9
    copy, run, appended_count = tmp_path / "copy.db", ScriptedRun(writer_id="w-meanwhile"), 0
    with sqlite3.connect(path) as source, sqlite3.connect(copy) as target:
        source.backup(target)
    async with await Ledger.open(copy) as ledger:
        with client_of(copy, address=LedgerAddress(copy)) as client:

            def is_under_way():
                return client.get("/api/audit/verification").json()["data"]["underWay"] is not None

            ledger.journal.submit(run.start()).result(30)
            client.post("/audit/verification")
            while await asyncio.to_thread(is_under_way):
                await asyncio.wait_for(asyncio.wrap_future(ledger.journal.submit(run.transition("n"))), 30)
                appended_count += 1
            assert appended_count > 1
            assert ended(client)["report"]["right"]


def test_what_was_changed_is_found_and_named(path, tmp_path):
    changed = tmp_path / "changed.db"
    with sqlite3.connect(path) as source, sqlite3.connect(changed) as target:
        source.backup(target)
        for (name,) in target.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            target.execute(f'DROP TRIGGER "{name}"')
        target.execute("UPDATE event SET recorded_us = recorded_us + 1 WHERE seq = 3")
    with client_of(changed, address=LedgerAddress(changed)) as client:
        client.post("/audit/verification")
        last = ended(client)
        assert not last["report"]["right"]
        said = words(client.get("/audit/verification").text)
        assert "Not as it should be" in said
        assert "event 3" in said


def test_a_server_that_was_not_told_where_the_ledger_is_says_so(path):
    with client_of(path) as client:
        assert "was not told where the ledger is" in client.get("/audit/verification").text
        assert client.post("/audit/verification").status_code == 409
        assert client.get(f"/audit/bundle?{ANSWERED}").status_code == 409
        assert client.get(f"/audit/runs?{ANSWERED}").status_code == 200


def test_a_page_elsewhere_cannot_have_the_ledger_verified(client):
    answer = client.post("/audit/verification", headers={"Origin": "https://elsewhere.example"})
    assert answer.status_code == 403


class Exchanged:
    """A ledger in whose place another one is put."""

    def __init__(self, reader):
        self.reader = reader

    async def system_events(self, after_seq, limit):
        return await self.reader.system_events(after_seq, limit)


async def test_what_was_decided_in_another_ledger_is_told_of_none_that_is_put_into_its_place(tmp_path):
    async with await Ledger.open(tmp_path / "a.db") as first, await Ledger.open(tmp_path / "b.db") as second:
        for ledger, owners in ((first, ("ops-1", "ops-2")), (second, ("ops-3", "ops-4", "ops-5"))):
            for owner in owners:
                await ledger.tokens.make(owner, ["read"])
        served = Exchanged(first.reader)
        history = SystemHistory(served)

        async def owners_told():
            return [entry.facts["owner"] for entry in (await history.read_on())["tokens"].newest]

        assert await owners_told() == await owners_told() == ["ops-1", "ops-2"]
        await first.tokens.make("ops-6", ["read"])
        assert await owners_told() == ["ops-1", "ops-2", "ops-6"]
        served.reader = second.reader
        assert await owners_told() == ["ops-3", "ops-4", "ops-5"]
