"""`/metrics`: what a server and its ledger count, as Prometheus reads it; no label names a run or a session."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import accumulate
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ledger.measures import Histogram, Measures, SigningMeasures
from ledger.records import Vitals
from viewer.access.routes import GuardedRoute, Right

if TYPE_CHECKING:
    from prometheus_client.core import Metric

SECONDS_BOUNDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
OTHER = "other"
"""In place of paths and methods that anybody may make up."""


class Living(Protocol):
    """A ledger, or a reader of one."""

    async def vitals(self) -> Vitals:
        """What there is to count in the ledger itself."""


class Metrics:
    """Counts requests, and tells them together with what the ledger counts."""

    def __init__(self, ledger: Living, measures: Callable[[], Measures] | None = None) -> None:
        """`measures` are those of a ledger that is open for writing in this process."""
        self._ledger = ledger
        self._measures = measures
        self._requests: Counter[tuple[str, str, str]] = Counter()
        self._counts = [0] * (len(SECONDS_BOUNDS) + 1)
        self._total_s = 0.0

    @property
    def routes(self) -> list[GuardedRoute]:
        return [GuardedRoute("/metrics", self.show, needs=Right.AUDIT)]

    def answered(self, method: str, route: str, status: int, duration_s: float) -> None:
        """A request was answered."""
        self._requests[method if method in METHODS else OTHER, route, str(status)] += 1
        self._counts[bisect_left(SECONDS_BOUNDS, duration_s)] += 1
        self._total_s += duration_s

    async def show(self, request: Request) -> Response:
        """All metrics, as text."""
        from prometheus_client import CollectorRegistry
        from prometheus_client.exposition import choose_encoder

        vitals = await self._ledger.vitals()
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collected([*self._of_server(), *self._of_writer(), *_of_ledger(vitals)]))
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    def _of_server(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily

        requests = CounterMetricFamily(
            "tachograph_viewer_requests", "Requests answered.", labels=["method", "route", "status"]
        )
        for labels, count in sorted(self._requests.items()):
            requests.add_metric(labels, count)
        yield requests
        seconds = Histogram(SECONDS_BOUNDS, tuple(self._counts), self._total_s)
        yield _histogram("tachograph_viewer_request_seconds", "From a request to the end of its answer.", seconds)

    def _of_writer(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily

        if self._measures is None:
            return
        measures = self._measures()
        yield _histogram("tachograph_append_seconds", "From submission to acknowledgement.", measures.append_s)
        yield _histogram("tachograph_batch_appends", "Appends in one transaction.", measures.batch_appends)
        failed = CounterMetricFamily("tachograph_appends_failed", "Appends refused or lost.", labels=["code"])
        for code, count in sorted(measures.failed.items()):
            failed.add_metric([code], count)
        yield failed
        if measures.signing is not None:
            yield from _of_signing(measures.signing)
        load = measures.load
        yield _gauge("tachograph_queue_appends", "Appends that wait to be written.", load.queue_appends)
        yield _gauge("tachograph_queue_bytes", "Their bytes.", load.queue_bytes)
        yield _gauge("tachograph_permits_granted", "Boundaries under way.", load.permits_granted)
        yield _gauge("tachograph_permits_waiting", "Boundaries that wait for room.", load.permits_waiting)


class CountRequests:
    """Around everything: tells how each request was answered, by the route that it took."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began_s, status = perf_counter(), 500

        async def heard(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, heard)
        finally:
            route = getattr(scope.get("route"), "path", OTHER)
            self.metrics.answered(scope["method"], route, status, perf_counter() - began_s)


class _Collected:
    """Metrics that are there already."""

    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        return self._metrics


def _of_signing(signing: SigningMeasures) -> Iterator[Metric]:
    from prometheus_client.core import CounterMetricFamily

    yield _gauge("tachograph_checkpoint_events", "Events under the last signed checkpoint.", signing.size)
    if signing.signed_us is not None:
        yield _gauge("tachograph_checkpoint_time_seconds", "When it was signed, since 1970.", signing.signed_us / 1e6)
    yield CounterMetricFamily("tachograph_checkpoints_signed", "Checkpoints signed.", value=signing.signed_count)
    refused = CounterMetricFamily("tachograph_checkpoints_refused", "Not signed or not stored.", labels=["code"])
    for code, count in sorted(signing.refused.items()):
        refused.add_metric([code], count)
    yield refused


def _of_ledger(vitals: Vitals) -> Iterator[Metric]:
    from prometheus_client.core import GaugeMetricFamily

    yield _gauge("tachograph_runs_open", "Runs that have not ended.", vitals.runs_open)
    yield _gauge("tachograph_followers_waiting", "Followers in this process at the end of the log.", vitals.followers)
    yield _gauge("tachograph_last_leaf", "The last number of the public order; -1 if none.", vitals.last_leaf)
    if vitals.unsequenced is not None and vitals.unsequenced_s is not None:
        yield _gauge("tachograph_unsequenced_events", "Events without such a number yet.", vitals.unsequenced)
        yield _gauge("tachograph_unsequenced_seconds", "Since the first of them was recorded.", vitals.unsequenced_s)
    lags = GaugeMetricFamily("tachograph_follower_lag_events", "Events that it wants and lacks.", labels=["follower"])
    for name, lag in vitals.follower_lags.items():
        lags.add_metric([name], lag)
    yield lags
    if vitals.wal_bytes is not None:
        yield _gauge("tachograph_wal_bytes", "Size of the log beside the file.", vitals.wal_bytes)


def _gauge(name: str, text: str, value: float) -> Metric:
    from prometheus_client.core import GaugeMetricFamily

    return GaugeMetricFamily(name, text, value=value)


def _histogram(name: str, text: str, found: Histogram) -> Metric:
    from prometheus_client.core import HistogramMetricFamily

    buckets = zip((*map(str, found.bounds), "+Inf"), map(float, accumulate(found.counts)), strict=True)
    return HistogramMetricFamily(name, text, buckets=list(buckets), sum_value=found.total)
