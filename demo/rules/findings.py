"""Figures and log lines compared with fixed limits: what is fine, what is worth watching, what needs an answer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from demo.rules.causes import CAUSE_SEARCHES
from demo.rules.results import Result, measured, of_tool
from demo.rules.topics import ALERTS, CPU, DISK, LOG_ACCESS, LOGS, MEMORY, TOPICS, Topic
from demo.text import beginning

DISK_WARNING_PERCENT = 80
DISK_CRITICAL_PERCENT = 90
MEMORY_WARNING_PERCENT = 80
MEMORY_CRITICAL_PERCENT = 90
SWAP_WARNING_PERCENT = 50
CPU_WARNING_PERCENT = 90
LOAD_WARNING_PER_CPU = 1.0
LOAD_CRITICAL_PER_CPU = 2.0
URGENT_ALERTS = frozenset({"critical", "error", "page"})
"""Values of the label `severity` of an alert."""
TARGETS_DOWN = "up == 0"
"""Asked of Prometheus: what it cannot scrape, and so knows nothing of."""
LISTED_MAX = 5
QUOTED_LINE_CHARS = 160
FOLDER_UNREADABLE = "folder_unreadable"
"""The code of a log search whose folder is missing or closed to it."""


class Severity(IntEnum):
    """How bad a finding is."""

    FINE = 0
    WATCH = 1
    ACT = 2


MARKS = {Severity.FINE: "", Severity.WATCH: " (watch)", Severity.ACT: " (act)"}
"""What follows a statement, so that the bad ones stand out in a list."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One statement that the evidence supports."""

    topic: Topic
    severity: Severity
    text: str
    source: str
    """The tool whose result says so."""
    quoted: bool = False
    """Whether it is about a text that was searched for as it stands."""


def findings(results: Sequence[Result]) -> tuple[Finding, ...]:
    """Everything the results say, by topic."""
    sections = measured(results)
    unread = list(dict.fromkeys(_unread(results)))
    found = [*_disks(sections), *_memory(sections), *_cpu(sections), *_processes(results), *_logs(results), *unread]
    found += [*_alerts(results), *_targets(results)]
    return tuple(sorted(found, key=lambda finding: (*TOPICS, LOG_ACCESS).index(finding.topic)))


def size(size_bytes: float) -> str:
    """A size as people read it: `23.5 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(size_bytes) < 1024 or unit == "TiB":
            break
        size_bytes /= 1024
    return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"


def count(number: int, noun: str) -> str:
    """`no lines`, `1 line`, `12,345 lines`, `2 processes`."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number or 'no':{',' if number else ''}} {noun if number == 1 else plural}"


def _severity(value: float, *, watch: float, act: float) -> Severity:
    return Severity.ACT if value >= act else Severity.WATCH if value >= watch else Severity.FINE


def _disks(sections: Mapping[str, Any]) -> Iterator[Finding]:
    for disk in sections.get("disks", []):
        used, inodes = disk["used_percent"], disk["inodes_used_percent"] or 0.0
        text = f"`{disk['mount']}` is {used}% full: {size(disk['free_bytes'])} free of {size(disk['total_bytes'])}"
        if inodes:
            text += f", {inodes}% of its inodes used"
        worst = max(used, inodes)
        severity = _severity(worst, watch=DISK_WARNING_PERCENT, act=DISK_CRITICAL_PERCENT)
        yield Finding(DISK, severity, text, "host_metrics")


def _memory(sections: Mapping[str, Any]) -> Iterator[Finding]:
    if memory := sections.get("memory"):
        text = (
            f"{size(memory['available_bytes'])} of {size(memory['total_bytes'])} memory is available "
            f"({memory['used_percent']}% used)"
        )
        severity = _severity(memory["used_percent"], watch=MEMORY_WARNING_PERCENT, act=MEMORY_CRITICAL_PERCENT)
        yield Finding(MEMORY, severity, text, "host_metrics")
    if swap := sections.get("swap"):
        if swap["total_bytes"] == 0:
            yield Finding(MEMORY, Severity.FINE, "no swap is set up", "host_metrics")
        else:
            text = f"{size(swap['used_bytes'])} of {size(swap['total_bytes'])} swap is used ({swap['used_percent']}%)"
            watch = Severity.WATCH if swap["used_percent"] >= SWAP_WARNING_PERCENT else Severity.FINE
            yield Finding(MEMORY, watch, text, "host_metrics")


def _cpu(sections: Mapping[str, Any]) -> Iterator[Finding]:
    if cpu := sections.get("cpu"):
        text = f"{count(cpu['cpu_count'], 'CPU')} {cpu['used_percent']}% busy over {cpu['watched_s']} s"
        if cpu["iowait_percent"]:
            text += f", {cpu['iowait_percent']}% waiting for disks"
        busy = Severity.WATCH if cpu["used_percent"] >= CPU_WARNING_PERCENT else Severity.FINE
        yield Finding(CPU, busy, text, "host_metrics")
    if load := sections.get("load"):
        text = (
            f"load {load['load_1m']} over 1 min, {load['load_5m']} over 5, {load['load_15m']} over 15: "
            f"{load['per_cpu_1m']} per CPU"
        )
        severity = _severity(load["per_cpu_1m"], watch=LOAD_WARNING_PER_CPU, act=LOAD_CRITICAL_PER_CPU)
        yield Finding(CPU, severity, text, "host_metrics")


def _processes(results: Sequence[Result]) -> Iterator[Finding]:
    for result in of_tool(results, "top_processes"):
        by_cpu = result.value["sort_by"] == "cpu"
        rows = [row for row in result.value["processes"] if row["cpu_percent" if by_cpu else "memory_bytes"]][:3]
        if rows:
            listed = ", ".join(
                f"`{row['name']}` ({row['pid']}) "
                + (f"{row['cpu_percent']}% of a CPU" if by_cpu else size(row["memory_bytes"]))
                for row in rows
            )
            of_all = count(result.value["process_count"], "process")
            text = f"{'busiest' if by_cpu else 'largest'} of {of_all}: {listed}"
            yield Finding(CPU if by_cpu else MEMORY, Severity.FINE, text, "top_processes")


def _alerts(results: Sequence[Result]) -> Iterator[Finding]:
    for result in of_tool(results, "prometheus_alerts"):
        alerts = result.value["alerts"]
        if not alerts:
            yield Finding(ALERTS, Severity.FINE, "no alert is active in Prometheus", "prometheus_alerts")
        for alert in alerts[:LISTED_MAX]:
            is_firing = alert["state"] == "firing"
            severity = Severity.ACT if alert["severity"].lower() in URGENT_ALERTS else Severity.WATCH
            text = f"the alert {quoted(alert['name'])} is {'firing' if is_firing else 'pending'}"
            if summary := alert["annotations"].get("summary") or alert["annotations"].get("description"):
                text += f": {quoted(summary)}"
            yield Finding(ALERTS, severity if is_firing else Severity.FINE, text, "prometheus_alerts")
        if more := result.value["alert_count"] - len(alerts[:LISTED_MAX]):
            yield Finding(ALERTS, Severity.WATCH, f"{count(more, 'more alert')} active", "prometheus_alerts")


def _targets(results: Sequence[Result]) -> Iterator[Finding]:
    for result in of_tool(results, "query_prometheus"):
        if result.value["query"] != TARGETS_DOWN:
            continue
        series = result.value["series"]
        names = [f"{one['labels'].get('job', '')}/{one['labels'].get('instance', '')}" for one in series[:LISTED_MAX]]
        text = f"{count(result.value['series_count'], 'scrape target')} down"
        text += f": {', '.join(map(quoted, names))}" if names else ""
        yield Finding(ALERTS, Severity.WATCH if series else Severity.FINE, text, "query_prometheus")


def _unread(results: Sequence[Result]) -> Iterator[Finding]:
    """Why no log file was read, where none was: then nothing that was not found is good news."""
    for result in results:
        if result.tool != "search_logs":
            continue
        if result.error_code == FOLDER_UNREADABLE:
            yield Finding(LOG_ACCESS, Severity.WATCH, result.value["error"]["message"], "search_logs")
        elif result.ok and not result.value["files_searched"]:
            reasons = sorted({skipped["reason"] for skipped in result.value["skipped"]})
            where = f"`{result.value['folder']}`"
            if reasons:
                claim = f"no log file could be read in {where}: {', '.join(reasons).lower()}"
            else:
                named = result.arguments.get("name_pattern", "*")
                claim = f"there is no log file in {where}" + (f" named like `{named}`" if named != "*" else "")
            yield Finding(LOG_ACCESS, Severity.WATCH, claim, "search_logs")


def _logs(results: Sequence[Result]) -> Iterator[Finding]:
    for result in of_tool(results, "search_logs"):
        value = result.value
        if not value["files_searched"] or value["pattern"] in CAUSE_SEARCHES:
            # What signs of a cause mean is for the diagnosis to say.
            continue
        topic = next((topic for topic in TOPICS if topic.log_pattern == value["pattern"]), None)
        found = value["match_count"]
        searched = f"{count(value['files_searched'], 'log file')} ({count(value['lines_searched'], 'line')})"
        if topic is None:
            claim = f"“{value['pattern']}” is in {count(found, 'line')} of {searched}"
        elif topic is LOGS:
            claim = f"{count(found, 'error line')} in {searched}"
        else:
            claim = f"{count(found, 'line')} about trouble with {topic.label} in {searched}"
        if value["matches"]:
            newest = value["matches"][0]
            claim += f"; newest {cited(newest)}: {quoted(newest['text'])}"
        severity = Severity.WATCH if found else Severity.FINE
        yield Finding(topic or LOGS, severity, claim, "search_logs", quoted=topic is None)


def cited(match: Mapping[str, Any]) -> str:
    """Where a line is: `syslog:120`."""
    line_no = match["line_no"]
    return f"`{match['file']}`" if line_no is None else f"`{match['file']}:{line_no}`"


def quoted(line: str) -> str:
    """A log line within a sentence, without what would break out of the quotation."""
    clean = "".join(char if char.isprintable() else " " for char in line).replace("`", "'")
    return f"`{beginning(clean, QUOTED_LINE_CHARS)}`"
