"""The Prometheus tools against a real Prometheus that scrapes an exporter of the test's, and against what is none."""

import asyncio
import http.server
import itertools
import json
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest

from demo.bounds import PROMETHEUS_POINTS_MAX, TOOL_RESULT_BYTES_MAX
from demo.tools import Sources, find_tool
from demo.tools.errors import PrometheusRefused, PrometheusTimedOut, PrometheusUnreachable, PrometheusUnusable
from demo.tools.prometheus import prometheus_alerts, query_prometheus, query_prometheus_range
from harness import SystemWallClock
from tests.demo.chats import ask
from tests.servers.prometheus import scraping

RULES = """
groups:
  - name: test
    rules:
      - alert: QueueLong
        expr: queue_length > 100
        labels: {severity: critical}
        annotations: {summary: "{{ $labels.queue }} holds {{ $value }}"}
      - alert: QueueGrows
        expr: queue_length > 10
        labels: {severity: warning}
      - alert: QueueNotEmpty
        expr: queue_length > 0
        for: 1h
"""
EXPORTED = "\n".join(
    [
        "# TYPE queue_length gauge",
        'queue_length{queue="mail"} 250',
        'queue_length{queue="none"} 0',
        *(f'crowd{{number="{number}",padding="{"x" * 150}"}} {number}' for number in range(400)),
        "odd NaN",
        "",
    ]
)


@contextmanager
def answering(handle):
    """A server on loopback, each of whose requests is handed to `handle`; HOST:PORT."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            handle(self)

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def saying(body, status=200, **headers):
    def handle(request):
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body if isinstance(body, bytes) else body.encode())

    return handle


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    """One that has scraped the exporter, and whose alerts are up."""
    with (
        answering(saying(EXPORTED, **{"Content-Type": "text/plain"})) as exporter,
        scraping(exporter, tmp_path_factory.mktemp("prometheus"), RULES) as server,
    ):
        server.query('ALERTS{alertname="QueueNotEmpty"}')
        server.query('ALERTS{alertname="QueueGrows"}')
        server.query('ALERTS{alertname="QueueLong"}')
        server.query("crowd offset 1s")
        yield server


class TestReal:
    async def test_an_expression_gives_labels_and_values(self, run, prometheus):
        found = await query_prometheus(run, "queue_length > 0", url=prometheus.url)
        (series,) = found["series"]
        assert (series["labels"]["queue"], series["value"]) == ("mail", 250.0)
        assert (found["result_type"], found["series_count"], found["limits_reached"]) == ("vector", 1, [])

    @pytest.mark.parametrize(
        ("query", "value"),
        [("1 + 1", 2.0), ('"a text"', "a text"), ("odd", "NaN"), ("1 / 0", "+Inf"), ("crowd{number='7'}[1m]", 7.0)],
    )
    async def test_every_type_of_result_is_plain_json(self, run, prometheus, query, value):
        found = await query_prometheus(run, query, url=prometheus.url)
        assert found["series"][0]["value"] == value
        json.dumps(found, allow_nan=False)

    async def test_an_expression_that_matches_nothing_gives_nothing(self, run, prometheus):
        assert (await query_prometheus(run, "no_such_series", url=prometheus.url))["series"] == []

    async def test_more_series_than_asked_for_are_counted_and_the_cut_is_said(self, run, prometheus):
        found = await query_prometheus(run, "crowd", limit=3, url=prometheus.url)
        assert (found["series_count"], len(found["series"]), found["limits_reached"]) == (400, 3, ["series"])

    # The last minute, as this server has had nothing to scrape before.
    @pytest.mark.parametrize(("name", "when"), [("query_prometheus", {}), ("query_prometheus_range", {"minutes": 1})])
    async def test_the_largest_result_keeps_its_bound(self, run, prometheus, tmp_path, name, when):
        sources = Sources(tmp_path, prometheus_url=prometheus.url)
        found = await find_tool(name, sources).bound(sources)(run, query="crowd", limit=50, **when)
        assert len(json.dumps(found)) <= TOOL_RESULT_BYTES_MAX
        assert found["limits_reached"]

    async def test_a_range_has_evenly_spaced_points_and_ends_now(self, run, prometheus):
        before_s = int(time.time())
        found = await query_prometheus_range(run, "vector(1)", minutes=600, url=prometheus.url, clock=SystemWallClock())
        (course,) = found["series"]
        times = [time_s for time_s, _ in course["points"]]
        assert len(times) == PROMETHEUS_POINTS_MAX
        assert {later - earlier for earlier, later in itertools.pairwise(times)} == {found["step_s"]} == {600}
        assert before_s <= times[-1] <= int(time.time())
        assert (course["first"], course["lowest"], course["highest"], course["last"]) == (1.0, 1.0, 1.0, 1.0)

    async def test_a_range_may_lie_in_the_past(self, run, prometheus):
        found = await query_prometheus_range(
            run, "time()", minutes=1, minutes_ago=60, url=prometheus.url, clock=SystemWallClock()
        )
        assert abs(found["series"][0]["last"] - (time.time() - 3600)) < 30

    async def test_alerts_that_fire_come_first_and_among_them_the_worst(self, run, prometheus):
        found = await prometheus_alerts(run, url=prometheus.url)
        assert [(alert["name"], alert["state"], alert["severity"]) for alert in found["alerts"]] == [
            ("QueueLong", "firing", "critical"),
            ("QueueGrows", "firing", "warning"),
            ("QueueNotEmpty", "pending", ""),
        ]
        assert (found["firing_count"], found["pending_count"]) == (2, 1)
        assert found["alerts"][0]["annotations"] == {"summary": "mail holds 250"}

    async def test_alerts_may_be_asked_for_by_state_and_are_cut_to_a_number(self, run, prometheus):
        found = await prometheus_alerts(run, state="firing", limit=1, url=prometheus.url)
        assert (found["alert_count"], len(found["alerts"]), found["limits_reached"]) == (2, 1, ["alerts"])

    @pytest.mark.parametrize("query", ["sum(", "rate(queue_length)", "} or {", "label_replace(up, '1', '', '', '')"])
    async def test_a_wrong_expression_is_a_typed_error_that_says_what_is_wrong(self, run, prometheus, query):
        with pytest.raises(PrometheusRefused, match="mend the expression"):
            await query_prometheus(run, query, url=prometheus.url)

    async def test_what_takes_too_long_is_given_up(self, run, prometheus, monkeypatch):
        monkeypatch.setattr("demo.tools.prometheus.QUERY_TIMEOUT", "1ms")
        heavy = "sum_over_time(vector(time())[10h:10ms])"
        with pytest.raises(PrometheusTimedOut):
            await query_prometheus(run, heavy, url=prometheus.url)

    async def test_a_check_of_the_machine_asks_prometheus_where_there_is_one(self, chatting, prometheus):
        async with chatting() as agent:
            watched = replace(agent, sources=replace(agent.sources, prometheus_url=prometheus.url))
            checked = await ask(watched, "Check this machine")
            unwatched = await ask(agent, "Check this machine")
        assert "The alert `QueueLong` is firing: `mail holds 250` (act) [prometheus_alerts]" in checked.text
        assert "No scrape targets down. [query_prometheus]" in checked.text
        assert "runbooks/alert-firing.md" in checked.text
        assert "rometheus" not in unwatched.text

    async def test_a_question_about_alerts_is_answered_from_them(self, chatting, prometheus):
        async with chatting() as agent:
            watched = replace(agent, sources=replace(agent.sources, prometheus_url=prometheus.url))
            answer = await ask(watched, "Which alerts are firing?")
        assert "Act on alerts and targets in Prometheus today. The alert `QueueLong` is firing" in answer.text
        assert not answer.degraded


class TestFailing:
    async def query(self, run, address):
        return await query_prometheus(run, "up", url=f"http://user:secret@{address}")

    async def test_nobody_there(self, run):
        with pytest.raises(PrometheusUnreachable) as caught:
            await self.query(run, "127.0.0.1:1")
        assert "secret" not in str(caught.value)

    @pytest.mark.parametrize(
        "body",
        [
            *("", "<html>", "[]", "{}", b"\xff", '{"status": "success"}'),
            '{"status": "success", "data": {"resultType": "vector"}}',
            '{"status": "success", "data": {"resultType": "vector", "result": [{"metric": {"a": 1}}]}}',
        ],
    )
    async def test_what_is_no_prometheus_is_said_to_be_none(self, run, body):
        with answering(saying(body)) as address, pytest.raises(PrometheusUnusable):
            await self.query(run, address)

    async def test_a_redirect_is_not_followed(self, run, prometheus):
        elsewhere = saying("", 302, Location=f"{prometheus.url}/api/v1/query?query=up")
        with answering(elsewhere) as address, pytest.raises(PrometheusUnusable):
            await self.query(run, address)

    async def test_an_endless_answer_is_read_up_to_its_bound(self, run):
        def endless(request):
            request.send_response(200)
            request.end_headers()
            try:
                while True:
                    request.wfile.write(b" " * 65536)
            except OSError:
                pass

        with answering(endless) as address, pytest.raises(PrometheusUnusable, match="more than 4 MiB"):
            await self.query(run, address)

    async def test_an_answer_that_drips_is_given_up_in_time(self, run, monkeypatch):
        monkeypatch.setattr("demo.tools.prometheus_client.PROMETHEUS_TIMEOUT_S", 0.3)

        def dripping(request):
            request.send_response(200)
            request.end_headers()
            try:
                while True:
                    request.wfile.write(b" ")
                    time.sleep(0.02)
            except OSError:
                pass

        with answering(dripping) as address, pytest.raises(PrometheusTimedOut):
            await self.query(run, address)

    async def test_the_end_of_its_task_ends_a_question(self, run):
        asked, left = threading.Event(), threading.Event()

        def silent(request):
            asked.set()
            left.wait(20)

        with answering(silent) as address:
            task = asyncio.create_task(self.query(run, address))
            await asyncio.to_thread(asked.wait, 20)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            left.set()
