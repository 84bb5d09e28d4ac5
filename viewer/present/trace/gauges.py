"""Limits as gauges: every limit the run has, how much of it is used, and which one ended the run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ledger.records import RunDetail
from ledger.words.codes import amount, resource
from ledger.words.format import count
from ledger.words.usage import known, unknown_count
from viewer.words import gettext as _

_ORDER = ("model_calls", "tool_calls")
_LAST = ("repeated_calls", "input_tokens", "output_tokens", "total_tokens", "cost_micros", "run_bytes")
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
    settled_share: float
    """The same without what is only reserved."""
    tone: str
    """`binding` for the limit that ended the run, `passed` for an observed one that was passed, `high`, or nothing."""
    observed: bool
    """Whether what passes it is let through."""
    note: str


def gauges(run: RunDetail, elapsed_us: int) -> tuple[Gauge, ...]:
    """Time first, then calls, each tool, tokens, cost, bytes, and any limit this viewer has no name for."""
    bound = binding(run)
    share = _share(elapsed_us, run.timeout_us)
    time = Gauge(
        key="time",
        label=resource("time"),
        used=_seconds(elapsed_us),
        limit=f"{_seconds(run.timeout_us)} s",
        share=share,
        settled_share=share,
        tone=_tone("time", bound, elapsed_us, run.timeout_us),
        observed=False,
        note=_("so far") if run.summary.status == "RUNNING" else "",
    )
    return (time, *(_gauge(run, key, bound) for key in _keys(run)))


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
    key = str(run.refused.get("resource"))
    return "repeated_calls" if key.startswith("repeat:") else key


def enforced_limits(run: RunDetail) -> dict[str, int]:
    """The limits that end a run, by what is charged; the default of tools by each tool that it holds for."""
    found = {key: _limit(run.limits, run.observed_limits, key) for key in _keys(run) if key != "repeated_calls"}
    return {key: limit for key, limit in found.items() if limit is not None}


def _keys(run: RunDetail) -> Iterator[str]:
    limits = {**run.limits, **run.observed_limits}
    tools = {key for key in limits if key.startswith("tool:")}
    if "tool_default" in limits:
        tools |= {key for key in run.usage if key.startswith("tool:")}
        bound = binding(run)
        tools |= {bound} if bound is not None and bound.startswith("tool:") else set()
    known = {*_ORDER, *_LAST, *tools, "tool_default"}
    yield from (key for key in _ORDER if key in limits)
    yield from sorted(tools)
    yield from (key for key in _LAST if key in limits)
    yield from sorted(limits.keys() - known)


def _limit(limits: Mapping[str, int], others: Mapping[str, int], key: str) -> int | None:
    """The limit under its own name, else the default for tools that have none."""
    own = limits.get(key)
    return limits.get("tool_default") if own is None and key.startswith("tool:") and key not in others else own


def _gauge(run: RunDetail, key: str, bound: str | None) -> Gauge:
    enforced = _limit(run.limits, run.observed_limits, key)
    limit = enforced if enforced is not None else _limit(run.observed_limits, run.limits, key) or 0
    used, reserved = run.usage.get(key), run.reserved.get(key, 0)
    shown = known(run, key, amount(key, used or 0), _("unknown"))
    notes = [
        _("only observed") if enforced is None else "",
        _("%(amount)s of it reserved", amount=amount(key, reserved)) if reserved else "",
        _unknown(key, unknown_count(run, key)),
    ]
    is_repeat = key == "repeated_calls"
    return Gauge(
        key=key,
        label=resource(key),
        used=_("at most %(limit)s", limit=count(limit)) if is_repeat else shown,
        limit="" if is_repeat else f"{amount(key, limit)}{_unit(run, key)}",
        share=_share(used or 0, limit),
        settled_share=_share((used or 0) - reserved, limit),
        tone=_tone(key, bound, used or 0, limit) if enforced is not None else "passed" if (used or 0) > limit else "",
        observed=enforced is None,
        note=" · ".join(filter(None, notes)),
    )


def _unknown(key: str, number: int) -> str:
    """Attempts that nobody reported, or could price."""
    if not number:
        return ""
    if key == "cost_micros":
        return _("%(number)s not priced", number=count(number))
    return _("%(number)s not reported", number=count(number))


def _unit(run: RunDetail, key: str) -> str:
    return f" {run.currency}" if key == "cost_micros" and run.currency else ""


def _share(used: int, limit: int) -> float:
    return round(min(max(used, 0) / limit, 1.0), 4) if limit > 0 else 1.0


def _tone(key: str, bound: str | None, used: int, limit: int) -> str:
    if key == bound:
        return "binding"
    return "high" if limit > 0 and used / limit >= HIGH_SHARE else ""


def _seconds(us: int) -> str:
    """Seconds without trailing zeros: `4.17`, `60`, `0.004`."""
    digits = 3 if us < 1_000_000 else 2 if us < 100_000_000 else 0
    text = f"{us / 1_000_000:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
