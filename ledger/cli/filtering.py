"""The options that say which runs a command is about, and the filter that they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from ledger.run_filter import STATUSES, UNSAID, RunFilter, labels_of
from ledger.words.times import moment_us

_OPTIONS = (
    click.option("--session", "session_id", help="Only the runs of this session."),
    click.option("--session-prefix", help="Only those of sessions whose ids begin so."),
    click.option("--status", multiple=True, help=f"Any of {', '.join(STATUSES)}; may be given several times."),
    click.option("--flow", "agent_flow", help="The agent's flow, such as CHAT_GRAPH."),
    click.option("--agent", help="The agent."),
    click.option("--agent-version", help="The agent's version."),
    click.option("--actor", help="For whom the run was."),
    click.option("--environment", help="Where the run was."),
    click.option("--without", multiple=True, metavar="NAME", help=f"Runs that do not say their {', '.join(UNSAID)}."),
    click.option("--label", "labels", multiple=True, metavar="NAME=VALUE", help="All of these; several times."),
    click.option("--tool", help="A tool of which the run was granted an attempt."),
    click.option("--reason", help="Why the run ended, such as HARNESS_LOST."),
    click.option("--degraded/--not-degraded", default=None, help="Whether a fallback answered."),
    click.option("--feedback", help="useful, not_useful or none."),
    click.option("--text", help='What question, answer or error message say: words, "phrases", beginnings*.'),
    click.option("--since", metavar="TIME", help="A day or an RFC 3339 time: created then or later."),
    click.option("--until", metavar="TIME", help="The same: created before."),
)


def filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give the command those options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def filter_of(conditions: Mapping[str, Any]) -> RunFilter:
    """The filter that the options are; `InvalidInput` says which one cannot be."""
    given = dict(conditions)
    since, until, labels = given.pop("since"), given.pop("until"), given.pop("labels")
    return RunFilter(
        **given,
        labels=labels_of("--label", labels),
        from_us=None if since is None else moment_us("--since", since),
        to_us=None if until is None else moment_us("--until", until),
    )
