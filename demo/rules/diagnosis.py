"""From evidence to one cause: what is going on now, what is over, and what only follows from something else."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from demo.rules import causes
from demo.rules.causes import CAUSE_PATTERNS, CAUSES, NOTHING_WRONG, UNKNOWN, Cause
from demo.rules.log_lines import Lines, LogLine, lines_in
from demo.rules.results import Result, measured, of_tool

FULL_PERCENT = 97
MEMORY_TIGHT_PERCENT = 85
LEAKING_SHARE_PERCENT = 30
GROWTH_FACTOR = 2.0
READINGS_MIN = 4
CPU_TAKEN_PERCENT = 90
LOAD_TAKEN_PER_CPU = 1.2
IOWAIT_TAKEN_PERCENT = 30
ERRORS_UNEXPLAINED = 5
"""Fresh error lines of one service: fewer are the daily round."""
DEPLOY_LEAD = timedelta(minutes=20)
"""Errors that a new version brings come within this time."""
READING = re.compile(r"(?:heap|rss|memory)\D{1,12}(\d+) ?(?:MiB|MB)", re.IGNORECASE)
SLOW = re.compile(r"slow request|blocked for more", re.IGNORECASE)
TIME_OR_CLASS = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.,]+Z?|\b(?:java|javax)(?:\.[a-z]+)+\.")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is wrong, of what, and which evidence says so."""

    label: str
    what: str | None = None
    cause: Cause | None = None
    lines: tuple[LogLine, ...] = ()
    """First and last of the signs."""
    sign_count: int = 0
    figures: tuple[str, ...] = ()


def is_searched(results: Sequence[Result]) -> bool:
    """Whether the evidence was collected that a diagnosis needs: figures, and logs that could be read."""
    searches = [result for result in of_tool(results, "search_logs") if result.value["pattern"] in CAUSE_PATTERNS]
    return bool(measured(results)) and any(result.value["files_searched"] for result in searches)


def diagnose(results: Sequence[Result]) -> Diagnosis:
    """The cause that explains most; that nothing is wrong is said only where everything was looked at."""
    evidence = _Evidence(measured(results), _processes(results), lines_in(results))
    for cause in CAUSES:
        if (said := evidence.of(cause)) is not None:
            return said
    if not is_searched(results):
        return Diagnosis(UNKNOWN)
    if unexplained := evidence.unexplained():
        return Diagnosis(UNKNOWN, lines=(unexplained[0], unexplained[-1]), sign_count=len(unexplained))
    return Diagnosis(NOTHING_WRONG)


def fresh_deploys(lines: Lines) -> Iterator[tuple[LogLine, str, str]]:
    """New versions of late: the line, the service, the version."""
    for line in lines.matching(causes.BAD_DEPLOY.sign):
        found = causes.BAD_DEPLOY.sign.search(line.text)
        assert found is not None
        service, version = (value for value in found.groups() if value)
        yield line, service, version


def grows_unseen(results: Sequence[Result]) -> str | None:
    """The process whose memory is worth following through its log: the largest, where memory is tight."""
    memory = measured(results).get("memory")
    rows = sorted(_processes(results), key=lambda row: -row["memory_percent"])
    if memory and memory["used_percent"] >= MEMORY_TIGHT_PERCENT and rows:
        return str(rows[0]["name"])
    return None


def _processes(results: Sequence[Result]) -> list[Mapping[str, Any]]:
    rows = {row["pid"]: row for result in of_tool(results, "top_processes") for row in result.value["processes"]}
    return list(rows.values())


@dataclass(frozen=True, slots=True)
class _Evidence:
    """Figures, processes and lines, and what each cause makes of them."""

    sections: Mapping[str, Any]
    processes: Sequence[Mapping[str, Any]]
    lines: Lines

    def of(self, cause: Cause) -> Diagnosis | None:
        """What speaks for the cause now, if enough does."""
        special = {
            causes.DISK_FULL: self._disk_full,
            causes.MEMORY_LEAK: self._memory_leak,
            causes.NOISY_NEIGHBOUR: self._noisy_neighbour,
            causes.BAD_DEPLOY: self._bad_deploy,
        }.get(cause)
        if special is not None:
            return special()
        signs = self._active(cause)
        return _told(cause, _named(cause, signs), signs) if len(signs) >= cause.least_signs else None

    def unexplained(self) -> list[LogLine]:
        """The fresh errors of the service that has most of them, where they are many."""
        errors = [line for line in self.lines.all if line.is_error and self.lines.is_news(line)]
        counts = Counter(line.file for line in errors)
        worst, number = counts.most_common(1)[0] if counts else ("", 0)
        return [line for line in errors if line.file == worst] if number >= ERRORS_UNEXPLAINED else []

    def _active(self, cause: Cause) -> list[LogLine]:
        """Signs that are news, and not followed in their file by a line that says it is over."""
        signs = self.lines.matching(cause.sign)
        ends: dict[str, datetime] = {}
        for line in self.lines.matching(cause.over):
            if line.at is not None:
                ends[line.file] = line.at
        return [line for line in signs if line.at is None or line.file not in ends or line.at > ends[line.file]]

    def _disk_full(self) -> Diagnosis | None:
        signs = self._active(causes.DISK_FULL)
        full = [disk for disk in self.sections.get("disks", []) if _fullness(disk)[0] >= FULL_PERCENT]
        if not full:
            return None
        percent, of = _fullness(full[0])
        figures = (f"`{full[0]['mount']}` has {percent}% of its {of} used",)
        return _told(causes.DISK_FULL, f"`{full[0]['mount']}`", signs, figures)

    def _memory_leak(self) -> Diagnosis | None:
        """Memory is tight, one process has much of it, and either grew or was ended for it."""
        memory = self.sections.get("memory")
        rows = sorted(self.processes, key=lambda row: -row["memory_percent"])
        if not memory or memory["used_percent"] < MEMORY_TIGHT_PERCENT or not rows:
            return None
        name, share = rows[0]["name"], rows[0]["memory_percent"]
        signs = [*self._active(causes.MEMORY_LEAK), *_growth(self.lines.all)]
        if share < LEAKING_SHARE_PERCENT or not signs:
            return None
        figures = (f"{memory['used_percent']}% of the memory is used, {share}% by `{name}`",)
        return _told(causes.MEMORY_LEAK, f"`{name}`", signs, figures)

    def _noisy_neighbour(self) -> Diagnosis | None:
        """The machine is busy with what is none of the services that are slow."""
        steal = self._active(causes.NOISY_NEIGHBOUR)
        if len(steal) >= causes.NOISY_NEIGHBOUR.least_signs:
            return _told(causes.NOISY_NEIGHBOUR, "another guest of the hypervisor (steal)", steal)
        cpu, load = self.sections.get("cpu"), self.sections.get("load")
        rows = sorted(self.processes, key=lambda row: -row["cpu_percent"])
        if not cpu or not load or not rows:
            return None
        waiting = cpu["iowait_percent"] or 0.0
        taken = cpu["used_percent"] >= CPU_TAKEN_PERCENT or waiting >= IOWAIT_TAKEN_PERCENT
        slow = self.lines.matching(SLOW)
        name = rows[0]["name"]
        if not taken or load["per_cpu_1m"] < LOAD_TAKEN_PER_CPU or name in {line.service for line in slow}:
            return None
        busy = (
            f"`{name}` uses {rows[0]['cpu_percent']}% of a CPU; the CPUs are {cpu['used_percent']}% busy, "
            f"{waiting}% waiting for disks, and the load is {load['per_cpu_1m']} per CPU"
        )
        return _told(causes.NOISY_NEIGHBOUR, f"`{name}`", slow, (busy,))

    def _bad_deploy(self) -> Diagnosis | None:
        """Errors of a service that began soon after its new version, and not before."""
        for line, service, version in fresh_deploys(self.lines):
            errors = [row for row in self.lines.all if row.is_error and row.service == service]
            after = [row for row in errors if row.at and line.at and line.at <= row.at]
            before = [row for row in errors if row.at and line.at and line.at > row.at and self.lines.is_news(row)]
            if len(after) < ERRORS_UNEXPLAINED - 2 or len(before) > 1:
                continue
            if after[0].at and line.at and after[0].at - line.at <= DEPLOY_LEAD:
                return _told(causes.BAD_DEPLOY, f"`{service}` {version}", [line, *after])
        return None


def _told(cause: Cause, what: str, signs: Sequence[LogLine], figures: tuple[str, ...] = ()) -> Diagnosis:
    ends = tuple(dict.fromkeys((signs[0], signs[-1]))) if signs else ()
    return Diagnosis(cause.label, what, cause, ends, len(signs), figures)


def _named(cause: Cause, signs: Sequence[LogLine]) -> str:
    """What most signs name; else the machine, if its own log has a sign; else the service that wrote most of them."""
    named: Counter[str] = Counter()
    for line in signs:
        found = cause.names.search(TIME_OR_CLASS.sub(" ", line.text)) if cause.names is not None else None
        named.update(value for value in (found.groups() if found else ()) if value)
    hosts = Counter(line.host for line in signs if line.host)
    services = Counter(line.service for line in signs)
    return f"`{(named or hosts or services).most_common(1)[0][0]}`"


def _fullness(disk: Mapping[str, Any]) -> tuple[float, str]:
    inodes = disk["inodes_used_percent"] or 0.0
    return max((disk["used_percent"], "space"), (inodes, "inodes"))


def _growth(lines: Sequence[LogLine]) -> list[LogLine]:
    """Readings of one service, in the same words, that go up all the while."""
    series: dict[tuple[str, str], list[tuple[int, LogLine]]] = {}
    for line in lines:
        if found := READING.search(line.text):
            words = re.sub(r"\d+", "#", line.text[found.start() :])
            series.setdefault((line.file, words), []).append((int(found[1]), line))
    for rows in series.values():
        values = [value for value, _ in rows]
        rises = sum(later > earlier for earlier, later in pairwise(values))
        if len(values) >= READINGS_MIN and values[-1] >= GROWTH_FACTOR * values[0] and rises >= 0.8 * (len(values) - 1):
            return [line for _, line in rows]
    return []
