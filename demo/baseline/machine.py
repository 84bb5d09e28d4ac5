"""A machine that never was: its name, its services, its figures, and log files that are filled line by line.

What goes on it is told in seconds before the moment at which it is looked at. Whatever is older than the last rotation
ends up in a rotated file by itself.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from demo.baseline.draw import Draw

MINUTE_S = 60
HOUR_S = 3600
DAY_S = 86_400
GIB = 1024**3
SERVICES = (
    "orders-api checkout payments-gw cart-svc inventory search-api mailer auth-svc billing profile-api "
    "reports thumbnailer gateway pricing ledger-sync notify catalog sessions-api shipping quota"
).split()
HOSTS = "web app edge node prod core blue".split()
PLACES = "fra ams lon waw mad osl".split()
SYSTEM_PROCESSES = ("systemd-journal", "sshd", "cron", "node-exporter", "dockerd", "rsyslogd")

LineFormat = Callable[[datetime, str, str, str], str]
"""From time, level, service and text to a line."""


def _spring(at: datetime, level: str, service: str, text: str) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03} {level:<5} [{service}-worker-{at.second % 8}] {text}"


def _iso(at: datetime, level: str, service: str, text: str) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z {level} {service}: {text}"


def _logfmt(at: datetime, level: str, service: str, text: str) -> str:
    return f"ts={at:%Y-%m-%dT%H:%M:%SZ} level={level.lower()} svc={service} msg={json.dumps(text)}"


def _json(at: datetime, level: str, service: str, text: str) -> str:
    return json.dumps({"time": f"{at:%Y-%m-%dT%H:%M:%SZ}", "level": level.lower(), "service": service, "message": text})


FORMATS: tuple[LineFormat, ...] = (_spring, _iso, _logfmt, _json)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a log, and when it was written."""

    at: datetime
    text: str


@dataclass(slots=True)
class Machine:
    """What the tools will find; `healthy_machine` makes one with nothing on it yet."""

    draw: Draw
    now: datetime
    host: str
    services: list[str]
    formats: dict[str, LineFormat]
    rotated_s: int
    """How long ago the logs were rotated."""
    figures: dict[str, Any]
    processes: list[dict[str, Any]]
    files: dict[str, list[Line]] = field(default_factory=dict)

    @property
    def service(self) -> str:
        """The one that people ask about."""
        return self.services[0]

    def say(self, service: str, ago_s: float, text: str, level: str = "INFO") -> None:
        """A line in the service's own log."""
        at = self._moment(ago_s)
        self._write(f"{service}/{service}.log", Line(at, self.formats[service](at, level, service, text)), ago_s)

    def system(self, ago_s: float, program: str, text: str) -> None:
        """A line in the machine's log."""
        at = self._moment(ago_s)
        self._write("syslog", Line(at, f"{at:%Y-%m-%dT%H:%M:%S}+00:00 {self.host} {program}: {text}"), ago_s)

    def write(self, log_folder: Path, snapshot: Path) -> None:
        """The log files with the times of their last lines, and the figures."""
        for name, lines in sorted(self.files.items()):
            ordered = sorted(lines, key=lambda line: line.at)
            path = log_folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{line.text}\n" for line in ordered))
            written_s = ordered[-1].at.timestamp()
            os.utime(path, (written_s, written_s))
        snapshot.write_text(json.dumps({"host": self.figures, "processes": self.processes}, indent=1))

    def process(self, name: str, *, cpu: float, memory_percent: float, user: str | None = None) -> int:
        """One more process; its number."""
        pid = self.draw.between(900, 64_000)
        self.processes.append(
            {
                "pid": pid,
                "name": name,
                "user": user or name.split("-")[0],
                "cpu_percent": cpu,
                "memory_bytes": int(self.figures["memory"]["total_bytes"] * memory_percent / 100),
                "memory_percent": memory_percent,
            }
        )
        return pid

    def change_process(self, name: str, **changes: float) -> None:
        """Other figures for a process that is there."""
        for row in self.processes:
            if row["name"] == name:
                row.update(changes)
                row["memory_bytes"] = int(self.figures["memory"]["total_bytes"] * row["memory_percent"] / 100)

    def set_cpu(self, used_percent: float, *, iowait_percent: float = 0.4, per_cpu: float | None = None) -> None:
        """How busy it is."""
        cpu, load = self.figures["cpu"], self.figures["load"]
        cpu |= {"used_percent": used_percent, "iowait_percent": iowait_percent}
        each = round(used_percent / 100 if per_cpu is None else per_cpu, 2)
        one = round(each * cpu["cpu_count"], 2)
        load |= {"load_1m": one, "load_5m": round(one * 0.9, 2), "load_15m": round(one * 0.7, 2), "per_cpu_1m": each}

    def set_memory(self, used_percent: float) -> None:
        """How much of it is in use."""
        memory = self.figures["memory"]
        used = int(memory["total_bytes"] * used_percent / 100)
        memory |= {"used_bytes": used, "available_bytes": memory["total_bytes"] - used, "used_percent": used_percent}

    def set_disk(self, mount: str, used_percent: float, *, inodes_used_percent: float | None = None) -> None:
        """A mounted file system; the fullest comes first, as the tool has them."""
        disks = self.figures["disks"]
        known = next((disk for disk in disks if disk["mount"] == mount), None)
        if known is None:
            known = _disk(self.draw, mount, used_percent)
            disks.append(known)
        used = int(known["total_bytes"] * used_percent / 100)
        known |= {"used_percent": used_percent, "used_bytes": used, "free_bytes": known["total_bytes"] - used}
        if inodes_used_percent is not None:
            known["inodes_used_percent"] = inodes_used_percent
        disks.sort(key=lambda disk: (-disk["used_percent"], disk["mount"]))

    def _moment(self, ago_s: float) -> datetime:
        return self.now - timedelta(seconds=ago_s, milliseconds=self.draw.between(0, 999))

    def _write(self, file: str, line: Line, ago_s: float) -> None:
        name = file if ago_s < self.rotated_s else f"{file}.1"
        self.files.setdefault(name, []).append(line)


def healthy_machine(draw: Draw) -> Machine:
    """A machine that idles: figures well below every limit, and no line in its logs yet."""
    now = datetime(2026, 1, 4, tzinfo=UTC) + timedelta(seconds=draw.between(10 * HOUR_S, 300 * DAY_S))
    services = draw.some(SERVICES, draw.between(3, 5))
    memory_bytes = draw.one((8, 16, 32, 64)) * GIB
    cpus = draw.one((2, 4, 8, 16))
    machine = Machine(
        draw=draw,
        now=now,
        host=f"{draw.one(HOSTS)}-{draw.one(PLACES)}-{draw.between(1, 40):02}",
        services=services,
        formats={service: draw.one(FORMATS) for service in services},
        rotated_s=draw.between(9, 20) * HOUR_S,
        figures={
            "cpu": {"cpu_count": cpus, "used_percent": 0.0, "iowait_percent": 0.0, "watched_s": 1.0},
            "memory": {"total_bytes": memory_bytes},
            "swap": {"total_bytes": 0, "used_bytes": 0, "available_bytes": 0, "used_percent": 0.0},
            "load": {},
            "disks": [],
            "disks_skipped": [],
        },
        processes=[],
    )
    machine.set_cpu(draw.share(4, 35))
    machine.set_memory(draw.share(30, 62))
    for mount in ("/", draw.one(("/data", "/srv", "/var/lib/postgresql"))):
        machine.set_disk(mount, draw.share(20, 70))
    for name in draw.some(SYSTEM_PROCESSES, 4):
        machine.process(name, cpu=draw.share(0, 1.5), memory_percent=draw.share(0.1, 0.9), user="root")
    for service in services:
        machine.process(service, cpu=draw.share(1, 9), memory_percent=draw.share(1, 6))
    return machine


def _disk(draw: Draw, mount: str, used_percent: float) -> dict[str, Any]:
    return {
        "mount": mount,
        "device": f"/dev/{draw.one(('sda', 'vda', 'nvme0n1p'))}{draw.between(1, 6)}",
        "filesystem": draw.one(("ext4", "xfs")),
        "total_bytes": draw.one((20, 40, 80, 160, 500)) * GIB,
        "used_bytes": 0,
        "free_bytes": 0,
        "used_percent": used_percent,
        "inodes_used_percent": draw.share(1, 30),
    }
