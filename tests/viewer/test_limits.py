"""What a client may cost, over a real socket: each bound has a name, and what happens beyond it is said or seen."""

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ledger import Ledger
from tests.ledger.scripted import ScriptedRun
from tests.viewer.fake_reader import FakeReader
from tests.viewer.served import served
from viewer.app import create_app
from viewer.http import head
from viewer.serving import connection as bounds
from viewer.serving import server

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 30
SOON_S = 0.2
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
BIG_BYTES = 64 * 1024 * 1024


@contextmanager
def connected(base_url, receive_bytes=None):
    """A bare connection to the server."""
    host, port = base_url.removeprefix("http://").split(":")
    with socket.socket() as client:
        client.settimeout(TIMEOUT_S)
        if receive_bytes:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        client.connect((host, int(port)))
        yield client


@pytest.fixture
def base_url():
    with served(FakeReader()) as base_url:
        yield base_url


def all_of(client):
    """What the server says until it closes."""
    said = b""
    try:
        while part := client.recv(1 << 20):
            said += part
    except ConnectionResetError:
        pass
    return said


def answer_on(client):
    """Status and JSON body of one answer; the connection stays open."""
    said = b""
    while b"\r\n\r\n" not in said:
        said += client.recv(65_536)
    top, _, body = said.partition(b"\r\n\r\n")
    length = int(re.search(rb"(?i)content-length: (\d+)", top)[1])
    while len(body) < length:
        body += client.recv(65_536)
    return int(top.split()[1]), json.loads(body)


def is_cut_while_sending(client, data=b"x"):
    """Whether the server ends the connection although a byte comes now and then."""
    until_s = time.monotonic() + TIMEOUT_S
    client.settimeout(0.02)
    while time.monotonic() < until_s:
        try:
            client.sendall(data)
            if client.recv(65_536) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


def test_a_head_that_comes_a_byte_now_and_then_is_cut(base_url, monkeypatch):
    monkeypatch.setattr(bounds, "HEAD_TIMEOUT_S", SOON_S)
    with connected(base_url) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        assert is_cut_while_sending(client)


def test_a_second_head_that_comes_a_byte_now_and_then_is_cut_too(base_url, monkeypatch):
    monkeypatch.setattr(bounds, "HEAD_TIMEOUT_S", SOON_S)
    with connected(base_url) as client:
        client.sendall(GET)
        assert answer_on(client)[0] == 200
        client.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
        assert is_cut_while_sending(client)


def test_a_connection_that_says_nothing_is_cut(base_url, monkeypatch):
    monkeypatch.setattr(bounds, "HEAD_TIMEOUT_S", SOON_S)
    with connected(base_url) as client:
        assert all_of(client) == b""


def test_a_body_that_nobody_waits_for_and_that_goes_on_is_cut(base_url, monkeypatch):
    monkeypatch.setattr(bounds, "REST_TIMEOUT_S", SOON_S)
    with connected(base_url) as client:
        client.sendall(b"POST /api/nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
        assert answer_on(client)[0] in (404, 405)
        assert is_cut_while_sending(client)


def test_a_connection_that_does_nothing_between_requests_is_closed(monkeypatch):
    monkeypatch.setattr(server, "KEEP_ALIVE_S", SOON_S)
    with served(FakeReader()) as base_url, connected(base_url) as client:
        client.sendall(GET)
        assert answer_on(client)[0] == 200
        assert all_of(client) == b""


def test_requests_follow_one_another_on_one_connection(base_url):
    with connected(base_url) as client:
        for _ in range(3):
            client.sendall(GET)
            assert answer_on(client)[0] == 200


@pytest.mark.parametrize(
    ("line", "headers", "status", "code"),
    [
        (b"GET /?" + b"a" * head.ADDRESS_BYTES_MAX, b"", 414, "address_too_long"),
        (b"GET /healthz", b"X-Long: " + b"a" * head.HEADERS_BYTES_MAX + b"\r\n", 431, "headers_too_large"),
        (b"GET /healthz", b"X: y\r\n" * head.HEADERS_MAX, 431, "headers_too_large"),
        (b"GET /healthz", b"X-Endless: " + b"a" * 4 * bounds.HEAD_BYTES_MAX, 431, "headers_too_large"),
        (b"GET /healthz", b"no header\r\n", 400, "malformed_request"),
        (b"\x16\x03\x01\x02", b"", 400, "malformed_request"),
    ],
    ids=["address", "bytes of headers", "headers", "endless", "malformed", "TLS"],
)
def test_a_head_out_of_proportion_is_refused_in_words(base_url, line, headers, status, code):
    with connected(base_url) as client:
        client.sendall(line + b" HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n")
        answered, body = answer_on(client)
        assert (answered, body["code"], body["data"]) == (status, code, None)


def test_a_body_whose_length_is_told_in_two_ways_is_refused_and_nothing_after_it_is_answered(base_url):
    twice = (
        b"POST /theme HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    )
    with connected(base_url) as client:
        client.sendall(twice + GET)
        said = all_of(client)
    assert said.startswith(b"HTTP/1.1 400")
    assert b'"code":"malformed_request"' in said
    assert said.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize("other", [b"websocket", b"h2c"])
def test_an_offer_to_speak_another_protocol_is_passed_over_and_fills_no_log(base_url, caplog, other):
    with connected(base_url) as client:
        client.sendall(GET[:-2] + b"Connection: Upgrade\r\nUpgrade: " + other + b"\r\n\r\n")
        assert answer_on(client)[0] == 200
    assert caplog.text == ""


def test_the_longest_head_that_fits_is_answered(base_url):
    with connected(base_url) as client:
        query = b"a" * (head.ADDRESS_BYTES_MAX - len("/healthz"))
        headers = b"X-Long: " + b"a" * (head.HEADERS_BYTES_MAX - len("hostlocalhostx-long"))
        client.sendall(b"GET /healthz?" + query + b" HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n\r\n")
        assert answer_on(client)[0] == 200


def test_whoever_comes_when_too_many_are_there_is_told_and_the_others_are_served(base_url, monkeypatch):
    monkeypatch.setattr(bounds, "CONNECTIONS_MAX", 2)
    with connected(base_url) as first, connected(base_url) as second:
        for client in (first, second):
            client.sendall(GET)
            assert answer_on(client)[0] == 200
        with connected(base_url) as third:
            status, body = answer_on(third)
            assert (status, body["code"]) == (503, "too_many_connections")
            assert all_of(third) == b""
        first.sendall(GET)
        assert answer_on(first)[0] == 200


@pytest.mark.parametrize("form", ["in one piece", "in parts"])
def test_a_client_that_does_not_read_is_dropped_and_little_is_kept_for_it(caplog, monkeypatch, form):
    caplog.set_level("INFO", "viewer.serving.connection")
    monkeypatch.setattr(bounds, "SEND_TIMEOUT_S", SOON_S)
    made_bytes = 0

    async def parts():
        nonlocal made_bytes
        while made_bytes < BIG_BYTES:
            made_bytes += 65_536
            yield b"x" * 65_536
            await asyncio.sleep(0)

    async def big(request):
        return Response(b"x" * BIG_BYTES) if form == "in one piece" else StreamingResponse(parts())

    with (
        served(FakeReader(), extra_routes=[Route("/big", big)]) as base_url,
        connected(base_url, receive_bytes=4_096) as client,
    ):
        client.sendall(b"GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until_s = time.monotonic() + TIMEOUT_S
        while "did not read its answer" not in caplog.text:
            assert time.monotonic() < until_s, "it is still waited for"
            time.sleep(0.02)
        assert len(all_of(client)) < BIG_BYTES / 2
    # What was made ahead of the client fits into the system's own buffers.
    assert made_bytes < BIG_BYTES / 2


def test_a_client_that_reads_gets_all_of_a_big_answer(base_url):
    async def big(request):
        return Response(b"x" * BIG_BYTES)

    with served(FakeReader(), extra_routes=[Route("/big", big)]) as base_url, connected(base_url) as client:
        client.sendall(b"GET /big HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert len(all_of(client).partition(b"\r\n\r\n")[2]) == BIG_BYTES


async def test_the_body_of_an_answer_does_not_wait_until_its_head_is_acknowledged():
    ready = asyncio.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = server.Server(server.config_of(create_app(FakeReader())), ready.set)
        ending = asyncio.create_task(serving.serve(sockets=[listener]))
        await asyncio.wait_for(ready.wait(), TIMEOUT_S)
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(GET)
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        [connection] = serving.server_state.connections
        answering = connection.transport.get_extra_info("socket")
        assert answering.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        writer.close()
        serving.should_exit = True
        await asyncio.wait_for(ending, TIMEOUT_S)


async def test_a_stop_ends_open_live_streams_at_once_and_in_peace(tmp_path):
    run = ScriptedRun()
    async with await Ledger.open(tmp_path / "runs.db") as ledger:
        ledger.journal.submit(run.start()).result()
        command = [sys.executable, "-c", "from viewer.serve import serve; serve()", "--db", tmp_path / "runs.db"]
        serving = await asyncio.create_subprocess_exec(
            *command, "--port", "0", cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            base_url = re.search(r"http://[^/]+", (await serving.stdout.readline()).decode())[0]
            streams = [await asyncio.to_thread(following, base_url) for _ in range(3)]
            serving.send_signal(signal.SIGTERM)
            said = [await asyncio.to_thread(all_of, stream) for stream in streams]
            _, errors = await asyncio.wait_for(serving.communicate(), TIMEOUT_S)
        finally:
            if serving.returncode is None:
                serving.kill()
    for stream, last in zip(streams, said, strict=True):
        stream.close()
        # The answer is whole, but the run has not ended: the client asks again.
        assert last.endswith(b"0\r\n\r\n")
        assert b"event: end" not in last
    assert (serving.returncode, errors) == (0, b"")


def following(base_url):
    """A connection on which a live stream has begun."""
    host, port = base_url.removeprefix("http://").split(":")
    client = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
    client.sendall(b"GET /api/diagnosis/session-1/runs/run-1/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
    said = b""
    while b"run.started" not in said:
        said += client.recv(65_536)
    return client
