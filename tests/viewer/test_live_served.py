"""Streams of a real server over a real socket: killed under its readers, read slowly, and cut half-way (CASES 48)."""

import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import httpx2
import orjson
import pytest

from tests.ledger.blank import blank_at
from tests.ledger.scripted import ScriptedRun
from tests.viewer.served import served
from tests.viewer.test_live import PATH, Writer, messages, of_run
from viewer.http import sending
from viewer.serving import connection

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 30
LINES = "/api/diagnosis/session-1/runs/run-2/events?format=ndjson"
PART_EVENTS = 250


@pytest.fixture
def path(tmp_path):
    return blank_at(tmp_path / "runs.db")


@pytest.fixture
def writer(path):
    writer = Writer(path)
    yield writer
    writer.close()


def many(run):
    """Many transitions in one append."""
    return run.submission(*chain.from_iterable(run.transition("n").events for _ in range(PART_EVENTS)))


@contextmanager
def serving(path):
    """The server in a process of its own, and a client over its socket, of which the system keeps little unread."""
    socket_path = path.with_suffix(".sock")
    command = [sys.executable, "-c", "from viewer.serve import serve; serve()", "--db", path, "--uds", socket_path]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline().startswith("Serving")
            transport = httpx2.HTTPTransport(uds=str(socket_path))
            with httpx2.Client(transport=transport, base_url="http://localhost", timeout=TIMEOUT_S) as client:
                yield process, client
        finally:
            process.kill()


def until_cut(found):
    """What comes until the connection ends before its time."""
    came = []
    try:
        for one in found:
            came.append(one)
    except httpx2.TransportError:
        return came
    raise AssertionError("it was not cut")


def test_whoever_read_from_a_server_that_was_killed_goes_on_after_its_restart(path, writer):  # CASES 48
    run, long = ScriptedRun(), ScriptedRun("run-2", writer_id="w2")
    writer.record(run.start(), run.transition("n0"), long.start(), *(many(long) for _ in range(6)))
    with (
        serving(path) as (process, client),
        client.stream("GET", PATH) as live,
        client.stream("GET", LINES) as lines,
    ):
        told, listed = messages(live.iter_lines()), lines.iter_lines()
        next(told)
        seen, got = [next(told), next(told)], [next(listed)]
        process.kill()
        process.wait(TIMEOUT_S)
        seen += until_cut(told)
        got += until_cut(listed)
    writer.record(run.transition("while nobody serves"))
    assert 0 < len(got) < long.events_made
    with serving(path) as (_, client):
        with client.stream("GET", PATH, headers={"Last-Event-ID": seen[-1][0]}) as live:
            told = messages(live.iter_lines())
            next(told)
            seen += [next(told)]
            writer.record(run.end())
            seen += list(told)
        got += client.get(f"{LINES}&cursor={orjson.loads(got[-1])['seq']}").text.splitlines()
    assert [seq for _, seq, _ in of_run(seen)] == list(range(1, run.events_made + 1))
    assert seen[-1] == (None, "end", {})
    *events, end = map(orjson.loads, got)
    assert [event["seq"] for event in events] == list(range(1, long.events_made + 1))
    assert end["end"]["headSeq"] == long.events_made


def test_whoever_reads_slowly_but_steadily_is_told_everything(path, writer, monkeypatch):  # CASES 48
    within_s = 1.5
    for module in (sending, connection):
        monkeypatch.setattr(module, "SEND_TIMEOUT_S", within_s)
    run = ScriptedRun()
    writer.record(run.start(), *(many(run) for _ in range(6)))
    transport = httpx2.HTTPTransport(socket_options=[(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)])
    began_s = time.monotonic()
    with (
        served(path, send_bytes=4_096) as base_url,
        httpx2.Client(transport=transport, base_url=base_url, timeout=TIMEOUT_S) as client,
        client.stream("GET", PATH) as answer,
    ):

        def slowly():
            for number, line in enumerate(answer.iter_lines()):
                if number % 50 == 0:
                    time.sleep(0.02)
                if line == f"id: {PART_EVENTS * 4}":
                    writer.record(run.end())
                yield line

        told = list(messages(slowly()))
    assert time.monotonic() - began_s > within_s
    assert [seq for _, seq, _ in of_run(told)] == list(range(1, run.events_made + 1))
    assert told[-1] == (None, "end", {})
