"""Steps, tools and events of one run, page by page and as a stream (SPEC D14, D16; CASES 40, 43)."""

import asyncio
import gc
import hashlib
import tracemalloc

import httpx2
import orjson
import pytest
from starlette.requests import Request

from ledger import Ledger, LedgerReader
from ledger.bytes import body_hash, genesis_link, next_link
from tests.bench.long_run import boundaries
from tests.ledger.scripted import ScriptedRun
from tests.viewer.example_runs import success_run
from tests.viewer.fake_reader import FakeReader, unreadable
from tests.viewer.served import client_of
from viewer.api.bodies import trace_body
from viewer.api.long_trace import ROWS_AT_ONCE, trace_parts
from viewer.api.parts import Parts
from viewer.http import sending, wrapper

RUN = "/api/diagnosis/s-1/runs/r-answered"
PARTS = ("steps", "tools", "events")
LINES = {"Accept": "application/x-ndjson"}


@pytest.fixture(scope="module")
def source(recorded_runs):
    return recorded_runs


def pages(client: httpx2.Client, path: str | None):
    """Every page of a list, by its next links."""
    while path:
        answer = client.get(path)
        assert answer.status_code == 200, answer.text
        yield answer.json()["data"]
        path = answer.links.get("next", {}).get("url")


def lines_of(answer: httpx2.Response):
    assert answer.headers["content-type"] == "application/x-ndjson"
    *events, end = [orjson.loads(line) for line in answer.text.splitlines()]
    return events, end["end"]


@pytest.mark.parametrize(("part", "of_trace"), [("steps", "agentSteps"), ("tools", "toolInvocations")])
def test_the_pages_of_a_run_are_its_trace(client, part, of_trace):
    trace = client.get("/api/diagnosis/s-1/trace?runId=r-answered").json()["data"]
    found = list(pages(client, f"{RUN}/{part}?limit=1"))
    assert all(len(page) == 1 for page in found)
    assert [row for page in found for row in page] == trace[of_trace]


def test_the_pages_of_events_and_the_stream_are_the_same_events(client):
    in_pages = [event for page in pages(client, f"{RUN}/events?limit=7") for event in page]
    events, end = lines_of(client.get(f"{RUN}/events", headers=LINES))
    assert events == in_pages == client.get(f"{RUN}/events").json()["data"]
    trace = client.get("/api/diagnosis/s-1/trace?runId=r-answered").json()["data"]["run"]
    assert [event["seq"] for event in events] == list(range(1, trace["eventCount"] + 1))
    head = {"headSeq": trace["eventCount"], "headLink": trace["headLink"]}
    assert end == {"sessionId": "s-1", "runId": "r-answered", "eventCount": trace["eventCount"], **head}


async def test_the_bodies_of_a_stream_are_those_that_were_hashed_and_linked(client, recorded_runs):  # SPEC D9, E9
    async with await LedgerReader.open(recorded_runs) as reader:
        link = genesis_link(await reader.ledger_id(), "r:r-answered")
    lines = client.get(f"{RUN}/events?format=ndjson").content.splitlines()
    for seq, line in enumerate(lines[:-1], start=1):
        event = orjson.loads(line)
        body = line[line.index(b'"body":') + len(b'"body":') : line.index(b',"bodyHash"')]
        link = next_link(link, seq, event["recordedUs"], body_hash(body))
        assert (event["bodyHash"], event["link"]) == (body_hash(body).hex(), link.hex())
    assert orjson.loads(lines[-1])["end"]["headLink"] == link.hex()


def test_a_stream_goes_on_where_one_was_cut(client):
    events, _ = lines_of(client.get(f"{RUN}/events", headers=LINES))
    rest, end = lines_of(client.get(f"{RUN}/events?cursor=5", headers=LINES))
    assert (rest, end["eventCount"]) == (events[5:], len(events) - 5)
    none, end = lines_of(client.get(f"{RUN}/events?cursor={len(events) + 9}", headers=LINES))
    assert (none, end["eventCount"]) == ([], 0)


def test_an_events_own_address_gives_the_event_of_the_list(client):
    for event in client.get(f"{RUN}/events").json()["data"]:
        assert client.get(f"{RUN}/events/{event['seq']}").json()["data"] == event


@pytest.mark.parametrize("seq", ["0", "1000000", "9007199254740991"])
def test_an_event_that_the_run_does_not_have_is_not_found(client, seq):
    answer = client.get(f"{RUN}/events/{seq}")
    assert (answer.status_code, answer.json()["code"]) == (404, "event_not_found")


@pytest.mark.parametrize("seq", ["-1", "x", "1.0", "²", "9007199254740992", "99999999999999999"])
def test_what_is_no_position_is_refused(client, seq):
    answer = client.get(f"{RUN}/events/{seq}")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert "seq" in answer.json()["message"]


@pytest.mark.parametrize("part", [*PARTS, "events?format=ndjson", "events/1"])
def test_parts_of_a_foreign_run_and_of_an_unknown_one_get_the_same_answer(client, part):  # CASES 43
    foreign = client.get(f"/api/diagnosis/s-2/runs/r-answered/{part}")
    unknown = client.get(f"/api/diagnosis/s-1/runs/r-none/{part}")
    assert (foreign.status_code, foreign.json()["code"]) == (404, "run_not_found")
    assert foreign.content == unknown.content


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=0", "invalid_input"),
        ("limit=1001", "invalid_input"),
        ("limit=x", "invalid_input"),
        ("limit=1&limit=2", "invalid_input"),
        ("cursor=x", "invalid_cursor"),
        ("cursor=-1", "invalid_cursor"),
        ("cursor=", "invalid_cursor"),
    ],
)
def test_a_page_that_makes_no_sense_is_refused(client, part, query, code):
    answer = client.get(f"{RUN}/{part}?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, code)


def test_a_form_that_there_is_not_is_refused(client):
    answer = client.get(f"{RUN}/events?format=xml")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")


@pytest.mark.parametrize("part", [*PARTS, "events?format=ndjson", "events/1"])
def test_parts_of_an_unchanged_run_are_not_sent_again(client, part):  # SPEC D16
    tag = client.get(f"{RUN}/{part}").headers["etag"]
    again = client.get(f"{RUN}/{part}", headers={"If-None-Match": tag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)


@pytest.mark.parametrize("part", [*PARTS, "events?format=ndjson"])
def test_parts_of_a_run_that_went_on_are_sent_again(part):
    run = success_run()
    with client_of(FakeReader([run])) as client:
        url = f"/api/diagnosis/{run.session_id}/runs/{run.run_id}/{part}"
        tag = client.get(url).headers["etag"]
        run.transition(2_600, "composer", "again")
        assert client.get(url, headers={"If-None-Match": tag}).status_code == 200


def test_the_two_forms_of_events_have_tags_of_their_own_and_caches_are_told(client):
    page, stream = client.get(f"{RUN}/events"), client.get(f"{RUN}/events", headers=LINES)
    assert page.headers["etag"] != stream.headers["etag"]
    assert page.headers["vary"] == stream.headers["vary"] == "Accept"


def test_the_head_of_a_stream_has_no_lines(client):
    answer = client.head(f"{RUN}/events", headers=LINES)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"] == "application/x-ndjson"


class Slow(FakeReader):
    """Fails at a later page, or lets the run go on meanwhile."""

    def __init__(self, run, *, fails_after=None, goes_on=False):
        super().__init__([run])
        self.run, self.fails_after, self.goes_on = run, fails_after, goes_on
        self.read_after = []

    async def events(self, session_id, run_id, after_seq=0, limit=200):
        self.read_after.append(after_seq)
        if self.fails_after is not None and after_seq >= self.fails_after:
            raise unreadable()
        if self.goes_on:
            self.run.transition(2_600, "composer", "again")
        return await super().events(session_id, run_id, after_seq, limit)


def long_run(events=450):
    run = success_run()
    while len(run.events) < events:
        run.transition(2_600, "composer", "again")
    return run


def test_a_stream_ends_at_the_head_as_it_was_at_the_beginning():
    run = long_run()
    with client_of(Slow(run, goes_on=True)) as client:
        events, end = lines_of(client.get(f"/api/diagnosis/{run.session_id}/runs/{run.run_id}/events", headers=LINES))
    assert (len(events), end["eventCount"], end["headSeq"]) == (450, 450, 450)
    assert end["headLink"] == events[-1]["link"]
    assert len(run.events) > 450


def test_a_stream_that_had_to_be_cut_is_not_ended():
    run = long_run()
    url = f"/api/diagnosis/{run.session_id}/runs/{run.run_id}/events"
    got: list[bytes] = []
    with (
        client_of(Slow(run, fails_after=200)) as client,
        client.stream("GET", url, headers=LINES) as answer,
        pytest.raises(httpx2.RemoteProtocolError),
    ):
        got.extend(answer.iter_bytes())
    assert [orjson.loads(line)["seq"] for line in b"".join(got).splitlines()] == list(range(1, 201))


def asked(run, query=b"format=ndjson"):
    params = {"sessionId": run.session_id, "runId": run.run_id}
    return Request({"type": "http", "method": "GET", "headers": [], "query_string": query, "path_params": params})


async def connected():
    await asyncio.Event().wait()


async def test_whoever_does_not_read_a_stream_is_dropped_and_nothing_more_is_read_for_him(monkeypatch):
    monkeypatch.setattr(sending, "SEND_TIMEOUT_S", 0.05)
    reader = Slow(long_run())
    answer = await Parts(reader).events(asked(reader.run))
    sent = []

    async def send(message):
        if sent:
            await asyncio.Event().wait()
        sent.append(message["type"])

    await answer({"type": "http", "method": "GET"}, connected, send)
    assert (sent, reader.read_after) == (["http.response.start"], [0])


async def test_nothing_more_is_read_for_whoever_has_gone():
    reader = Slow(long_run())
    answer = await Parts(reader).events(asked(reader.run))
    gone = asyncio.Event()

    async def receive():
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        if message["type"] == "http.response.body":
            gone.set()
            await asyncio.sleep(0)

    await answer({"type": "http", "method": "GET"}, receive, send)
    assert reader.read_after == [0, 200]


def with_tools(count):
    run = success_run()
    while len(run.tools) < count:
        start_ms = 3_000 + len(run.tools)
        run.tool(start_ms, start_ms + 1, "query_logs", {"n": start_ms}, ordinal=start_ms, output="x")
    return run


@pytest.mark.parametrize("count", [ROWS_AT_ONCE, ROWS_AT_ONCE + 1, 3 * ROWS_AT_ONCE])
def test_a_long_trace_is_sent_in_parts_that_are_the_same_whole(count):  # SPEC R4
    run = with_tools(count)
    parts = list(trace_parts(run.trace()))
    assert sum(part.count(b'"invocationNo"') > 0 for part in parts) == -(-count // ROWS_AT_ONCE)
    assert b"".join(parts) == wrapper.ok(trace_body(run.trace())).body
    with client_of(FakeReader([run])) as client:
        answer = client.get(f"/api/diagnosis/{run.session_id}/trace?runId={run.run_id}")
    assert answer.content == b"".join(parts)
    assert answer.headers["content-type"] == "application/json"


SHORT, LONG = 600, 60_000
EVENTS_PER_APPEND = 300


async def record(path, sizes):
    """Runs of so many events and a few more, by the ledger."""
    runs = {size: ScriptedRun(f"run-{size}") for size in sizes}
    async with await Ledger.open(path) as ledger:
        for size, run in runs.items():
            ledger.journal.submit(run.start())
            for _ in range(size // EVENTS_PER_APPEND):
                last = ledger.journal.submit(boundaries(run))
            last.result()
    return runs


@pytest.mark.timeout(300)
async def test_a_stream_of_60_000_events_needs_memory_for_one_page(tmp_path):  # CASES 40
    runs = await record(tmp_path / "long.db", (SHORT, LONG))
    async with await LedgerReader.open(tmp_path / "long.db") as reader:

        async def streamed(run):
            """How many lines were sent, their hash, and the most memory that it took."""
            lines, digest = 0, hashlib.sha256()

            async def send(message):
                nonlocal lines
                lines += message.get("body", b"").count(b"\n")
                digest.update(message.get("body", b""))

            answer = await Parts(reader).events(asked(run))
            gc.collect()
            tracemalloc.start()
            await answer({"type": "http", "method": "GET"}, connected, send)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            return lines, peak

        await streamed(runs[SHORT])  # what is made once, and remembered
        (short_lines, short_peak), (long_lines, long_peak) = await streamed(runs[SHORT]), await streamed(runs[LONG])
    assert long_lines > 60_000 > short_lines
    assert long_peak < 2 * short_peak
