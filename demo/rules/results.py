"""What tools returned, as the rules read it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from demo.text import json_object


@dataclass(frozen=True, slots=True)
class Result:
    """One answered tool call."""

    tool: str
    arguments: Mapping[str, Any]
    value: Mapping[str, Any]
    error_code: str | None = None

    @property
    def ok(self) -> bool:
        return self.error_code is None

    @property
    def evidence_count(self) -> int:
        """Facts: sections, processes, matching lines, alerts, series, rows. A runbook is advice, not evidence."""
        if not self.ok:
            return 0
        if self.tool == "host_metrics":
            return len(self.value)
        if self.tool == "top_processes":
            return len(self.value["processes"])
        if self.tool == "prometheus_alerts":
            # That none is active is a fact, too.
            return max(1, len(self.value["alerts"]))
        if self.tool in ("query_prometheus", "query_prometheus_range"):
            return len(self.value["series"])
        if self.tool == "query_database":
            return len(self.value["rows"])
        return int(self.value["match_count"]) if self.tool == "search_logs" else 0


def parse_result(tool: str, arguments: str, answer: str) -> Result:
    """A result from the two JSON texts of a call; `{"error": {"code": ...}}` is an error."""
    value = _object(answer)
    error = value.get("error")
    code = str(error.get("code", "tool_error")) if isinstance(error, dict) else None
    return Result(tool, _object(arguments), value, code)


def of_tool(results: Sequence[Result], tool: str) -> Iterator[Result]:
    """The results of one tool that are no errors."""
    return (result for result in results if result.tool == tool and result.ok)


def measured(results: Sequence[Result]) -> dict[str, Any]:
    """All sections of host_metrics that were read, the latest of each."""
    sections: dict[str, Any] = {}
    for result in of_tool(results, "host_metrics"):
        sections.update(result.value)
    return sections


def _object(text: str) -> dict[str, Any]:
    """A JSON object, or an error in its shape if the text is none."""
    value = json_object(text)
    return {"error": {"code": "not_json"}} if value is None else value
