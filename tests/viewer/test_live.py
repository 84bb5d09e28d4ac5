"""The live stream of a run: every event once, resumed without a gap, ended with the run, and bounded (CASES 48)."""

import asyncio
import threading
import time

import orjson
import pytest
from starlette.requests import Request

from ledger import Ledger
from tests.ledger.blank import blank_at
from tests.ledger.scripted import ScriptedRun
from tests.viewer.example_runs import running_run
from tests.viewer.fake_reader import FakeReader
from tests.viewer.served import client_of
from viewer.api import live
from viewer.api.live import Live
from viewer.api.turns import Turns
from viewer.http import sending

PATH = "/api/diagnosis/session-1/runs/run-1/live"


class Writer:
    """A ledger that another thread writes, in step with the test."""

    def __init__(self, path):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.ledger = self.wait(Ledger.open(path))

    def wait(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(20)

    def record(self, *submissions):
        for submission in submissions:
            self.ledger.journal.submit(submission).result(20)

    def close(self):
        self.wait(self.ledger.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(20)
        self.loop.close()


@pytest.fixture
def path(tmp_path):
    return blank_at(tmp_path / "runs.db")


@pytest.fixture
def writer(path):
    writer = Writer(path)
    yield writer
    writer.close()


@pytest.fixture
def client(writer, path):
    with client_of(path) as client:
        yield client


@pytest.fixture
def run():
    return ScriptedRun()


def messages(lines):
    """The messages of a stream, each as its id, its name and its data; heartbeats as comments."""
    fields = {}
    for line in lines:
        if line.startswith(":"):
            yield None, "comment", line[1:].strip()
        elif line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield fields.get("id"), fields.get("event", "message"), orjson.loads(fields["data"])
            fields = {}


def of_run(found):
    return [(int(place), data["seq"], data["type"]) for place, name, data in found if name == "message"]


def test_a_run_is_told_from_its_beginning_to_its_end_as_it_happens(client, writer, run):  # CASES 48
    writer.record(run.start())
    with client.stream("GET", PATH) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        told = messages(answer.iter_lines())
        assert next(told)[1] == "comment"
        assert next(told)[2] == {"seq": 1, "type": "run.started"}
        for number in range(3):
            writer.record(run.transition(f"n{number}"))
            began_s = time.monotonic()
            assert next(told)[2] == {"seq": number + 2, "type": "graph.transitioned"}
            assert time.monotonic() - began_s < 1.0
        writer.record(ScriptedRun("run-2", writer_id="w2").start(), run.end())
        assert next(told)[2]["type"] == "run.terminated"
        assert next(told) == (None, "end", {})
        assert list(told) == []


def test_a_stream_goes_on_after_the_last_event_that_was_seen(client, writer, run):  # CASES 48
    for submission in run.whole():
        writer.record(submission)
    with client.stream("GET", PATH) as answer:
        whole = of_run(messages(answer.iter_lines()))
    assert [seq for _, seq, _ in whole] == list(range(1, run.events_made + 1))
    for number, (place, _, _) in enumerate(whole[:-1]):
        for address in (PATH, f"{PATH}?from=now"):
            with client.stream("GET", address, headers={"Last-Event-ID": str(place)}) as answer:
                assert of_run(messages(answer.iter_lines())) == whole[number + 1 :]
    done = client.get(PATH, headers={"Last-Event-ID": str(whole[-1][0])})
    assert (done.status_code, done.content) == (204, b"")
    assert client.get(f"{PATH}?from=now").status_code == 204


def test_what_came_after_the_end_is_told_up_to_the_last_of_it(client, writer, run):  # CASES 48
    writer.record(run.start(), run.end())
    with client.stream("GET", PATH) as answer:
        *_, (end, _, _) = of_run(messages(answer.iter_lines()))
    for useful in (True, False):
        writer.wait(writer.ledger.record_feedback(run.session_id, run.run_id, useful=useful))
    with client.stream("GET", PATH, headers={"Last-Event-ID": str(end)}) as answer:
        *told, last = messages(answer.iter_lines())
    assert [seq for _, seq, _ in of_run(told)] == list(range(3, 3 + len(of_run(told))))
    assert of_run(told)[-1][2] == "feedback.recorded"
    assert last == (None, "end", {})
    with client.stream("GET", PATH) as answer:
        assert len(of_run(messages(answer.iter_lines()))) == 2 + len(of_run(told))


def test_from_now_only_what_comes_is_told(client, writer, run):  # CASES 48
    writer.record(run.start(), run.transition("before"))
    with client.stream("GET", f"{PATH}?from=now") as answer:
        told = messages(answer.iter_lines())
        next(told)
        writer.record(run.transition("after"), run.end())
        assert [seq for _, seq, _ in of_run(told)] == [3, 4]


async def test_what_comes_before_it_is_a_streams_turn_is_told_together(path, run):  # CASES 48
    async with await Ledger.open(path) as ledger:
        ledger.journal.submit(run.start()).result(20)
        of_reader = Live(ledger.reader)
        turns = asyncio.Semaphore(0)
        of_reader.turns.take = turns.acquire
        bodies = asyncio.Queue()

        async def send(message):
            if body := message.get("body"):
                await bodies.put(body.decode())

        answer = await of_reader.live(asked("session-1", "run-1"))
        streaming = asyncio.ensure_future(answer({"type": "http"}, never, send))
        async with asyncio.timeout(20):
            assert await bodies.get() == ": following\n\n"
            for number in range(5):
                await asyncio.wrap_future(ledger.journal.submit(run.transition(f"n{number}")))
            last = await asyncio.wrap_future(ledger.journal.submit(run.end()))
            follower = ledger.reader.follow()
            while (await anext(follower))[1].seq < last.last_seq:
                pass
            # The watch goes on as long as somebody waits.
            waiting = asyncio.ensure_future(anext(follower))
            while ledger.reader._following._position < follower.position:
                await asyncio.sleep(0.01)
            waiting.cancel()
            assert bodies.empty()
            turns.release()
            told = of_run(messages((await bodies.get()).splitlines()))
            assert [seq for _, seq, _ in told] == list(range(1, last.last_seq + 1))
            await streaming


async def test_turns_come_no_faster_than_they_may():
    turns = Turns(per_s=20)
    now_s = asyncio.get_running_loop().time
    began_s = now_s()
    async with asyncio.timeout(20):
        await asyncio.gather(*(turns.take() for _ in range(20 + 10)))
    assert now_s() - began_s >= 0.5


async def test_whoever_gives_up_leaves_its_turn_to_the_others():
    turns = Turns(per_s=20)
    asking = [asyncio.ensure_future(turns.take()) for _ in range(2_000)]
    await asyncio.wait(asking, timeout=0.1)
    for one in asking:
        one.cancel()
    await asyncio.wait(asking)
    async with asyncio.timeout(30):
        await turns.take()


@pytest.mark.parametrize(
    ("address", "headers", "status", "code"),
    [
        ("/api/diagnosis/session-2/runs/run-1/live", {}, 404, "run_not_found"),
        ("/api/diagnosis/session-1/runs/run-9/live", {}, 404, "run_not_found"),
        ("/api/diagnosis/session-1/runs/%20/live", {}, 400, "invalid_input"),
        (PATH, {"Last-Event-ID": "x"}, 400, "invalid_input"),
        (PATH, {"Last-Event-ID": "-1"}, 400, "invalid_input"),
    ],
)
def test_what_cannot_be_followed_is_refused_before_anything_is_sent(
    client, writer, run, address, headers, status, code
):  # R4
    writer.record(run.start())
    answer = client.get(address, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_silent_stream_says_that_it_is_there(monkeypatch, client, writer, run):
    monkeypatch.setattr(live, "HEARTBEAT_S", 0.05)
    writer.record(run.start())
    with client.stream("GET", f"{PATH}?from=now") as answer:
        told = messages(answer.iter_lines())
        assert [next(told) for _ in range(3)][1:] == [(None, "comment", "still there")] * 2


def asked(session_id="s-43", run_id="run-live"):
    """A request for the live stream of a run; of that one nothing is ever told."""
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []}
    return Request(scope | {"path_params": {"sessionId": session_id, "runId": run_id}})


async def never():
    await asyncio.Event().wait()


async def test_a_client_that_does_not_read_is_dropped(monkeypatch):
    monkeypatch.setattr(sending, "SEND_TIMEOUT_S", 0.05)
    monkeypatch.setattr(live, "HEARTBEAT_S", 0.05)
    of_reader = Live(FakeReader([running_run()]))
    answer = await of_reader.live(asked())
    sent = []

    async def send(message):
        sent.append(message["type"])
        if len(sent) > 3:
            await never()

    async with asyncio.timeout(20):
        await answer({"type": "http"}, never, send)
    await asyncio.sleep(0)
    assert of_reader._open == 0
    assert len(asyncio.all_tasks()) == 1


async def test_a_client_that_has_gone_leaves_nothing_behind():
    of_reader = Live(FakeReader([running_run()]))
    answer = await of_reader.live(asked())
    gone = asyncio.Event()

    async def receive():
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        pass

    streaming = asyncio.ensure_future(answer({"type": "http"}, receive, send))
    await asyncio.sleep(0.05)
    assert of_reader._open == 1
    gone.set()
    async with asyncio.timeout(20):
        await streaming
    await asyncio.sleep(0)
    assert of_reader._open == 0
    assert len(asyncio.all_tasks()) == 1


async def test_whoever_comes_when_too_many_are_there_is_asked_to_come_again(monkeypatch):
    monkeypatch.setattr(live, "STREAMS_MAX", 0)
    answer = await Live(FakeReader([running_run()])).live(asked())
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
