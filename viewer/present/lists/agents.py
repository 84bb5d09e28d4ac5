"""What the runs of each agent add up to, with the one that needs attention first."""

from collections.abc import Iterable
from dataclasses import dataclass

from ledger.lists import AgentTally, Spend, Tallies
from ledger.words.codes import amount, plain, resource
from ledger.words.format import count, money
from viewer.present.trace.gauges import HIGH_SHARE
from viewer.present.trace.verdict import TONES
from viewer.words import N_, ngettext
from viewer.words import gettext as _

_FAILURES = ("FAILED", "TIMED_OUT", "BUDGET_EXHAUSTED")
_WORDS = {
    "SUCCESS": N_("%(number)s succeeded"),
    "RUNNING": N_("%(number)s running"),
    "CANCELLED": N_("%(number)s cancelled"),
    "FAILED": N_("%(number)s failed"),
    "TIMED_OUT": N_("%(number)s timed out"),
    "BUDGET_EXHAUSTED": N_("%(number)s out of budget"),
}
_ORDER = ("SUCCESS", "RUNNING", "CANCELLED", *_FAILURES)
SPENDS_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Share:
    """A stretch of the bar of outcomes, in per cent of its width."""

    x: float
    width: float
    tone: str
    words: str


@dataclass(frozen=True, slots=True)
class SpendRow:
    """The most that one run used of a limit, and what all runs used together."""

    label: str
    share: str
    """Of its limit, by the run that used most of it; `≥` where that is not known of all attempts."""
    percent: int
    used: str
    tone: str
    """`bad` where an enforced limit was passed, `passed` where an observed one was, `high`, or nothing."""
    is_observed: bool


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One version of an agent."""

    tally: AgentTally
    name: str
    shares: tuple[Share, ...]
    running: int
    failed: int
    refusals: tuple[str, ...]
    spends: tuple[SpendRow, ...]
    """Those nearest to their limits."""
    costs: tuple[str, ...]


def agent_rows(tallies: Tallies) -> list[AgentRow]:
    """Those with the largest share of failed runs first, then those with the newest run."""
    rows = [_row(tally) for tally in tallies.agents]
    return sorted(rows, key=lambda row: (row.failed / max(row.tally.run_count, 1), row.tally.newest_us), reverse=True)


def summary(tallies: Tallies, window: str) -> str:
    """All of it in one sentence."""
    totals: dict[str, int] = {}
    for tally in tallies.agents:
        for status, number in tally.by_status.items():
            totals[status] = totals.get(status, 0) + number
    if not tallies.run_count:
        return _("No run was started %(window)s.", window=_(window))
    running = totals.pop("RUNNING", 0)
    ended = [_outcome(status, totals[status]) for status in _ORDER if totals.get(status)]
    sentences = [ngettext("%(num)s run running now.", "%(num)s runs running now.", running)]
    if not running:
        sentences = [_("Nothing is running now.")]
    if ended:
        when = _(window)
        sentences.append(_("%(when)s: %(runs)s.", when=when[:1].upper() + when[1:], runs=", ".join(ended)))
    if tallies.is_cut:
        sentences.append(_("Only the newest %(number)s are added up.", number=count(tallies.run_count)))
    return " ".join(sentences)


def _row(tally: AgentTally) -> AgentRow:
    version = f"@{tally.agent_version}" if tally.agent_version else ""
    return AgentRow(
        tally=tally,
        name=f"{tally.agent}{version}" if tally.agent else _("agent not named"),
        shares=_shares(tally),
        running=tally.by_status.get("RUNNING", 0),
        failed=sum(tally.by_status.get(status, 0) for status in _FAILURES),
        refusals=tuple(_refusals(tally)),
        spends=tuple(_spend(each) for each in tally.spends[:SPENDS_SHOWN] if each.used or each.unknown_count),
        costs=tuple(_costs(tally)),
    )


def _shares(tally: AgentTally) -> tuple[Share, ...]:
    shares: list[Share] = []
    x = 0.0
    known = [status for status in _ORDER if status in tally.by_status]
    for status in (*known, *(each for each in tally.by_status if each not in _ORDER)):
        number = tally.by_status[status]
        width = 100 * number / max(tally.run_count, 1)
        shares.append(Share(round(x, 2), round(width, 2), TONES.get(status, "bad"), _outcome(status, number)))
        x += width
    return tuple(shares)


def _outcome(status: str, number: int) -> str:
    if status in _WORDS:
        return _(_WORDS[status], number=count(number))
    return f"{count(number)} {plain(status)}"


def _refusals(tally: AgentTally) -> Iterable[str]:
    if tally.degraded:
        yield _("%(number)s degraded", number=count(tally.degraded))
    refused = tally.refusals
    if number := refused.get("budget_exhausted", 0):
        yield ngettext("%(num)s run out of budget", "%(num)s runs out of budget", number)
    if number := refused.get("calls_denied", 0):
        yield ngettext("%(num)s call denied", "%(num)s calls denied", number)
    if number := refused.get("scopes_exhausted", 0):
        yield ngettext("%(num)s scope exhausted", "%(num)s scopes exhausted", number)
    if number := refused.get("limits_passed", 0):
        yield ngettext("%(num)s observed limit passed", "%(num)s observed limits passed", number)
    if number := tally.hidden_retries:
        yield ngettext("%(num)s hidden request", "%(num)s hidden requests", number)


def _spend(spend: Spend) -> SpendRow:
    percent, least = round(spend.highest_share * 100), "≥ " if spend.unknown_count else ""
    name, tone = resource(spend.resource), _tone(spend)
    if not spend.used:
        return SpendRow(name, _("unknown"), 0, _("unknown"), tone, spend.is_observed)
    used = f"{least}{amount(spend.resource, spend.used)}"
    return SpendRow(name, f"{least}{percent} %", percent, used, tone, spend.is_observed)


def _tone(spend: Spend) -> str:
    if spend.highest_share > 1:
        return "passed" if spend.is_observed else "bad"
    return "high" if spend.highest_share >= HIGH_SHARE and not spend.is_observed else ""


def _costs(tally: AgentTally) -> Iterable[str]:
    for currency in {**tally.cost_micros, **tally.cost_unknown}:
        micros, least = tally.cost_micros.get(currency), "≥ " if currency in tally.cost_unknown else ""
        yield f"{_('unknown') if micros is None else least + money(micros)} {currency}"
