"""A report on a verification in words, which never say more than was looked at (SPEC E9)."""

from __future__ import annotations

from collections.abc import Iterator

from ledger.verifying.findings import VerifyReport
from ledger.words.format import instant, plural
from ledger.words.text import one_line

FINDING_WIDTH = 400
"""Of a finding's line: what somebody wrote into the database is no reason to fill a terminal or a page."""
RUN_WIDTH = 300


def lines_of(report: VerifyReport, *, of: str | None = None) -> Iterator[str]:
    """All of it: what was looked at, what was found, and the tail that nothing outside vouches for."""
    yield looked_at(report, of=of)
    yield from finding_lines(report)
    yield verdict(report)
    yield from outdated_lines(report)
    yield from tail_lines(report)


def looked_at(report: VerifyReport, *, of: str | None = None) -> str:
    """What was looked at, `of` a run or of the whole ledger."""
    about = f"ledger {report.ledger_id}: "
    if of is not None:
        about = f"ledger {report.ledger_id}, only {one_line(of, RUN_WIDTH)}: "
    return (
        f"{about}{plural(report.event_count, 'event')} of {plural(report.stream_count, 'stream')},"
        f" {plural(report.content_count, 'content')}, {plural(report.row_count, 'row')}"
    )


def finding_lines(report: VerifyReport) -> Iterator[str]:
    """Each finding that is told, and how many more there are."""
    for finding in report.findings:
        yield one_line(str(finding), FINDING_WIDTH)
    if report.finding_count > len(report.findings):
        yield f"and {report.finding_count - len(report.findings):,} more"


def verdict(report: VerifyReport) -> str:
    """Whether all is as it should be."""
    if report.is_right:
        return "links, columns, contents, rows and the course of every run agree"
    return f"NOT as it should be: {plural(report.finding_count, 'finding')}"


def outdated_lines(report: VerifyReport) -> Iterator[str]:
    """How many runs wait for a rebuild."""
    if report.runs_outdated:
        verb = "is" if report.runs_outdated == 1 else "are"
        yield (
            f"{plural(report.runs_outdated, 'run')} {verb} folded by an earlier version;"
            " `tachograph rebuild` makes them anew"
        )


def tail_lines(report: VerifyReport) -> Iterator[str]:
    """Which events a checkpoint that was kept outside is of, and which nothing vouches for."""
    tail = report.tail
    anchored = plural(report.anchored_count, "event")
    under = f"{anchored} under a checkpoint kept outside are those that were signed"
    if not report.is_right:
        # Of an event the tree has its link: what else is wrong with it was said before.
        under = f"the links of {anchored} under a checkpoint kept outside are those that were signed"
    if report.anchored_count and not tail.event_count:
        yield f"{under}, and there are no others"
        return
    if report.anchored_count:
        yield under
    if not tail.event_count:
        yield "tail not anchored: there are no events yet"
        return
    said = f"tail not anchored: nothing outside the ledger vouches for {plural(tail.event_count, 'event')}"
    if tail.first_us is None or tail.last_us is None:
        yield f"{said}, and when they were recorded cannot be told"
    else:
        yield f"{said}, recorded from {instant(tail.first_us)} to {instant(tail.last_us)}"
