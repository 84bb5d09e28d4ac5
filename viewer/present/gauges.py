"""Limits as gauges: every limit the run has, how much of it is used, and which one ended the run."""

from collections.abc import Iterator
from dataclasses import dataclass

from ledger.records import RunDetail
from viewer.present.format import count, size
from viewer.present.words import resource

_ORDER = ("model_calls", "tool_calls")
_LAST = ("input_tokens", "output_tokens", "total_tokens", "run_bytes")
_TOKENS = ("input_tokens", "output_tokens", "total_tokens")
HIGH_SHARE = 0.8
COLUMNS_MAX = 9


@dataclass(frozen=True, slots=True)
class Gauge:
    """One limit."""

    key: str
    label: str
    used: str
    limit: str
    """With its unit."""
    share: float
    """Used of the limit, 0 to 1."""
    tone: str
    """`binding` for the limit that ended the run, else `high` or nothing."""
    note: str


def gauges(run: RunDetail, elapsed_us: int) -> tuple[Gauge, ...]:
    """Time first, then calls, each tool, tokens, bytes, and any limit this viewer has no name for."""
    bound = binding(run)
    time = Gauge(
        key="time",
        label=resource("time"),
        used=_seconds(elapsed_us),
        limit=f"{_seconds(run.timeout_us)} s",
        share=_share(elapsed_us, run.timeout_us),
        tone=_tone("time", bound, elapsed_us, run.timeout_us),
        note="so far" if run.summary.status == "RUNNING" else "",
    )
    return (time, *(_gauge(run, key, limit, bound) for key, limit in _limits(run)))


def columns(gauge_count: int) -> int:
    """Gauges in each row of a wide page, so that the rows are even."""
    rows = -(-gauge_count // COLUMNS_MAX)
    return -(-gauge_count // max(rows, 1))


def binding(run: RunDetail) -> str | None:
    """The key of the limit that ended the run, or None where no limit did."""
    if run.summary.status == "TIMED_OUT":
        return "time"
    if run.summary.status != "BUDGET_EXHAUSTED" or run.refused is None:
        return None
    return str(run.refused.get("resource"))


def _limits(run: RunDetail) -> Iterator[tuple[str, int]]:
    tools = {key: limit for key, limit in run.limits.items() if key.startswith("tool:")}
    default = run.limits.get("tool_default")
    if default is not None:
        tools |= {key: default for key in run.usage if key.startswith("tool:") and key not in tools}
        bound = binding(run)
        if bound is not None and bound.startswith("tool:"):
            tools.setdefault(bound, default)
    known = {*_ORDER, *_LAST, *tools, "tool_default"}
    yield from ((key, run.limits[key]) for key in _ORDER if key in run.limits)
    yield from sorted(tools.items())
    yield from ((key, run.limits[key]) for key in _LAST if key in run.limits)
    yield from sorted((key, limit) for key, limit in run.limits.items() if key not in known)


def _gauge(run: RunDetail, key: str, limit: int, bound: str | None) -> Gauge:
    used = run.usage.get(key)
    unknown = run.usage_unknown_count if key in _TOKENS else 0
    text = size if key == "run_bytes" else count
    shown = text(used or 0)
    if unknown:
        shown = "unknown" if used is None else f"≥ {shown}"
    return Gauge(
        key=key,
        label=resource(key),
        used=shown,
        limit=text(limit),
        share=_share(used or 0, limit),
        tone=_tone(key, bound, used or 0, limit),
        note=f"{unknown:,} not reported" if unknown else "",
    )


def _share(used: int, limit: int) -> float:
    return round(min(used / limit, 1.0), 4) if limit > 0 else 1.0


def _tone(key: str, bound: str | None, used: int, limit: int) -> str:
    if key == bound:
        return "binding"
    return "high" if limit > 0 and used / limit >= HIGH_SHARE else ""


def _seconds(us: int) -> str:
    """Seconds without trailing zeros: `4.17`, `60`, `0.004`."""
    digits = 3 if us < 1_000_000 else 2 if us < 100_000_000 else 0
    text = f"{us / 1_000_000:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
