"""The arguments of each tool, as a model supplies them: nothing unknown, nothing converted."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from demo.bounds import (
    ALERTS_SHOWN_MAX,
    CASES_SHOWN_MAX,
    LOG_MATCHES_SHOWN_MAX,
    LOG_PATTERN_CHARS_MAX,
    PROCESSES_SHOWN_MAX,
    PROMETHEUS_QUERY_CHARS_MAX,
    PROMETHEUS_RANGE_MINUTES_MAX,
    PROMETHEUS_SERIES_MAX,
    RUNBOOK_HITS_MAX,
    SQL_CHARS_MAX,
)
from demo.tools.figures import SECTIONS, Section

PROMQL = "One PromQL expression, for example `rate(http_requests_total[5m])`."


class Arguments(BaseModel):
    """What every tool's arguments have in common."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SimilarCasesArguments(Arguments):
    question: str = Field(min_length=1, max_length=2_000, description="What is asked now, in plain words.")
    limit: int = Field(default=2, ge=1, le=CASES_SHOWN_MAX, description="How many cases.")


class NoArguments(Arguments):
    """A tool that asks for nothing."""


class HostMetricsArguments(Arguments):
    sections: Annotated[list[Section], Field(min_length=1, max_length=len(SECTIONS))] = Field(
        default=list(SECTIONS), description="What to measure; everything if left out."
    )


class TopProcessesArguments(Arguments):
    sort_by: Literal["cpu", "memory"] = Field(default="memory", description="What to rank processes by.")
    limit: int = Field(default=5, ge=1, le=PROCESSES_SHOWN_MAX, description="How many processes.")


class SearchLogsArguments(Arguments):
    pattern: str = Field(min_length=1, max_length=LOG_PATTERN_CHARS_MAX, description="What to find, in any case.")
    regex: bool = Field(default=False, description="Whether the pattern is an RE2 regular expression.")
    name_pattern: str = Field(
        default="*",
        min_length=1,
        max_length=100,
        description="Only files like this, for example `nginx*` or `*/error.log`.",
    )
    limit: int = Field(default=20, ge=1, le=LOG_MATCHES_SHOWN_MAX, description="How many lines to show.")


class SearchRunbooksArguments(Arguments):
    query: str = Field(min_length=1, max_length=500, description="What the trouble is, in plain words.")
    limit: int = Field(default=2, ge=1, le=RUNBOOK_HITS_MAX, description="How many runbooks.")


class QueryPrometheusArguments(Arguments):
    query: str = Field(min_length=1, max_length=PROMETHEUS_QUERY_CHARS_MAX, description=PROMQL)
    limit: int = Field(default=20, ge=1, le=PROMETHEUS_SERIES_MAX, description="How many series to show.")


class QueryPrometheusRangeArguments(Arguments):
    query: str = Field(min_length=1, max_length=PROMETHEUS_QUERY_CHARS_MAX, description=PROMQL)
    minutes: int = Field(default=60, ge=1, le=PROMETHEUS_RANGE_MINUTES_MAX, description="How far to look back.")
    minutes_ago: int = Field(
        default=0, ge=0, le=PROMETHEUS_RANGE_MINUTES_MAX, description="When the range ends; 0 is now."
    )
    limit: int = Field(default=5, ge=1, le=PROMETHEUS_SERIES_MAX, description="How many series to show.")


class PrometheusAlertsArguments(Arguments):
    state: Literal["firing", "pending", "any"] = Field(default="any", description="Which alerts.")
    limit: int = Field(default=20, ge=1, le=ALERTS_SHOWN_MAX, description="How many alerts to show.")


class QueryDatabaseArguments(Arguments):
    sql: str = Field(
        min_length=1,
        max_length=SQL_CHARS_MAX,
        description="One SELECT, EXPLAIN of a SELECT, or SHOW, in the dialect of the database.",
    )
