"""The report as one HTML file that needs nothing beside it, made to be printed."""

from __future__ import annotations

import shlex

from ledger.audit.report import Report
from ledger.words.codes import noun
from ledger.words.format import day_time, instant
from viewer.rendering import Renderer
from viewer.report.sections import outcomes, sections, shares, usage
from viewer.report.zones import Zone
from viewer.site import Site


def render(report: Report, zone: Zone) -> str:
    """The whole file; every text of the record is escaped, and nothing in it stays invisible."""
    environment = Renderer(Site()).environment
    environment.filters.update(noun=noun, day_time=day_time)
    template = environment.get_template("report.html")
    return template.render(
        report=report,
        zone=zone,
        local=zone.words,
        shares=list(shares(report)),
        outcomes=outcomes(report),
        sections=sections(report),
        usage=usage(report),
        again=_again(report),
        bundle=shlex.join(["tachograph", "export", *_period(report), "-o", "period.bundle", "--db", "LEDGER"]),
    )


def _period(report: Report) -> list[str]:
    return ["--from", instant(report.wanted.from_us), "--to", instant(report.wanted.to_us)]


def _again(report: Report) -> str:
    """The command that makes this report anew."""
    wanted = report.wanted
    words = ["tachograph", "report", *_period(report)]
    if wanted.agent is not None:
        words += ["--agent", wanted.agent + (f"@{wanted.agent_version}" if wanted.agent_version else "")]
    words += ["--sample", str(len(report.sample)), "--seed", report.sample_seed]
    return shlex.join([*words, "--csv", "report.csv", "-o", "report.html", "--db", "LEDGER"])
