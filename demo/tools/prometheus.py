"""Prometheus: what fires, what an expression gives now, and how it went; each result says where it was cut."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypedDict, TypeVar

from demo.bounds import (
    PROMETHEUS_LABELS_SHOWN_MAX,
    PROMETHEUS_POINTS_MAX,
    PROMETHEUS_TEXT_CHARS_SHOWN,
    PROMETHEUS_TIMEOUT_S,
    TOOL_SHOWN_BYTES_MAX,
)
from demo.text import beginning
from demo.tools.prometheus_client import ActiveAlert, AlertsData, QueryData, Series, ask
from harness import RunContext
from harness.clock import WallClock

T = TypeVar("T")

SEVERITIES = ("critical", "error", "warning", "info")
"""Of the label `severity`, worst first; others come last."""
QUERY_TIMEOUT = f"{PROMETHEUS_TIMEOUT_S:.0f}s"

Value = float | str
"""A string where JSON has no number for it: `NaN`, `+Inf`, `-Inf`, or what a string expression gives."""


class Alert(TypedDict):
    """One alert that is active."""

    name: str
    state: str
    severity: str
    active_since: str
    value: Value
    labels: dict[str, str]
    annotations: dict[str, str]


class Alerts(TypedDict):
    """The active alerts, those that fire first, and among them the worst."""

    state: str
    alert_count: int
    firing_count: int
    """Of all that are active, whatever state was asked for."""
    pending_count: int
    alerts: list[Alert]
    limits_reached: list[str]


class Sample(TypedDict):
    """A series now."""

    labels: dict[str, str]
    value: Value | None
    """None for a native histogram."""


class Samples(TypedDict):
    """What an expression gives now."""

    query: str
    result_type: str
    series_count: int
    series: list[Sample]
    limits_reached: list[str]


class Course(TypedDict):
    """A series over a time."""

    labels: dict[str, str]
    first: Value | None
    last: Value | None
    lowest: float | None
    highest: float | None
    points: list[tuple[int, Value]]
    """Unix time in seconds and value, in order of time."""


class Courses(TypedDict):
    """How an expression went."""

    query: str
    start: str
    end: str
    step_s: int
    series_count: int
    series: list[Course]
    limits_reached: list[str]


async def prometheus_alerts(run: RunContext, state: str = "any", limit: int = 20, *, url: str) -> Alerts:
    """The alerts that are firing, pending, or any of both."""
    active = (await ask(url, "alerts", AlertsData)).alerts
    states = [alert.state for alert in active]
    wanted = sorted((alert for alert in active if state in ("any", alert.state)), key=_urgency)
    shown, limits_reached = _within_bounds(wanted, _alert, limit, noun="alerts")
    return Alerts(
        state=state,
        alert_count=len(wanted),
        firing_count=states.count("firing"),
        pending_count=states.count("pending"),
        alerts=shown,
        limits_reached=limits_reached,
    )


async def query_prometheus(run: RunContext, query: str, limit: int = 20, *, url: str) -> Samples:
    """The value of each series now; of a range such as `up[5m]` the last value."""
    data = await ask(url, "query", QueryData, query=query, timeout=QUERY_TIMEOUT)
    shown, limits_reached = _within_bounds(data.series, _sample, limit, noun="series")
    return Samples(
        query=query,
        result_type=data.result_type,
        series_count=len(data.series),
        series=shown,
        limits_reached=limits_reached,
    )


async def query_prometheus_range(
    run: RunContext,
    query: str,
    minutes: int = 60,
    minutes_ago: int = 0,
    limit: int = 5,
    *,
    url: str,
    clock: WallClock,
) -> Courses:
    """Each series from `minutes` before its end to its end, in evenly spaced points."""
    end_s = clock.now_us() // 1_000_000 - minutes_ago * 60
    step_s = max(1, math.ceil(minutes * 60 / PROMETHEUS_POINTS_MAX))
    # Both ends are points.
    start_s = end_s - (minutes * 60 // step_s - 1) * step_s
    data = await ask(
        url, "query_range", QueryData, query=query, start=start_s, end=end_s, step=step_s, timeout=QUERY_TIMEOUT
    )
    shown, limits_reached = _within_bounds(data.series, _course, limit, noun="series")
    return Courses(
        query=query,
        start=_utc(start_s),
        end=_utc(end_s),
        step_s=step_s,
        series_count=len(data.series),
        series=shown,
        limits_reached=limits_reached,
    )


def _within_bounds(
    found: Iterable[T], shown_as: Callable[[T], Any], limit: int, *, noun: str
) -> tuple[list[Any], list[str]]:
    """As many as fit, in their order, and which bounds left the others out."""
    shown: list[Any] = []
    size_bytes = 0
    for one in found:
        if len(shown) == limit:
            return shown, [noun]
        entry = shown_as(one)
        size_bytes += len(json.dumps(entry))
        if size_bytes > TOOL_SHOWN_BYTES_MAX:
            return shown, ["shown bytes"]
        shown.append(entry)
    return shown, []


def _alert(alert: ActiveAlert) -> Alert:
    return Alert(
        name=_cut(alert.labels.get("alertname", "")),
        state=_cut(alert.state),
        severity=_cut(alert.labels.get("severity", "")),
        active_since=_cut(alert.active_at),
        value=_value(alert.value),
        labels=_texts({name: text for name, text in alert.labels.items() if name not in ("alertname", "severity")}),
        annotations=_texts(alert.annotations),
    )


def _urgency(alert: ActiveAlert) -> tuple[bool, int, str]:
    severity = alert.labels.get("severity", "").lower()
    rank = SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)
    return alert.state != "firing", rank, alert.active_at


def _sample(series: Series) -> Sample:
    _, value = series.value or (series.values[-1] if series.values else (0, None))
    return Sample(labels=_texts(series.metric), value=None if value is None else _value(value))


def _course(series: Series) -> Course:
    points = [(int(time_s), _value(value)) for time_s, value in series.values[-PROMETHEUS_POINTS_MAX:]]
    numbers = [value for _, value in points if isinstance(value, float)]
    return Course(
        labels=_texts(series.metric),
        first=points[0][1] if points else None,
        last=points[-1][1] if points else None,
        lowest=min(numbers, default=None),
        highest=max(numbers, default=None),
        points=points,
    )


def _value(text: str) -> Value:
    try:
        number = float(text)
    except ValueError:
        return _cut(text)
    return number if math.isfinite(number) else text


def _texts(labels: Mapping[str, str]) -> dict[str, str]:
    shown = {_cut(name): _cut(text) for name, text in list(labels.items())[:PROMETHEUS_LABELS_SHOWN_MAX]}
    more = len(labels) - len(shown)
    return shown | {"…": f"{more} more"} if more else shown


def _cut(text: str) -> str:
    return beginning(text, PROMETHEUS_TEXT_CHARS_SHOWN)


def _utc(unix_s: int) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat().replace("+00:00", "Z")
