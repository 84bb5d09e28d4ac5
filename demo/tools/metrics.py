"""Live figures of this machine, read with psutil: how busy, how full, and by what."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from stat import S_ISDIR
from typing import Literal

import psutil

from demo.bounds import CPU_SAMPLE_S, DISKS_SHOWN_MAX, PROCESSES_SHOWN_MAX
from demo.tools.figures import (
    SECTIONS,
    Cpu,
    Disk,
    HostMetrics,
    Load,
    Memory,
    Process,
    Section,
    SkippedDisk,
    TopProcesses,
)
from demo.tools.snapshot import read_snapshot
from harness import RunContext

# Views of the kernel, file systems in memory, and read-only images, which are always full.
NOT_DISKS = frozenset(
    {
        *("autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs"),
        *("erofs", "fusectl", "hugetlbfs", "iso9660", "mqueue", "nsfs", "proc", "pstore", "ramfs", "rpc_pipefs"),
        *("securityfs", "squashfs", "sysfs", "tmpfs", "tracefs"),
    }
)
# Not asked, since a server that does not answer would hold the tool for ever.
NETWORK_FILESYSTEMS = frozenset(["9p", "afs", "ceph", "cifs", "fuse.sshfs", "nfs", "nfs4", "smb3", "smbfs"])


def host_metrics(
    run: RunContext, sections: Sequence[Section] = SECTIONS, *, snapshot: Path | None = None
) -> HostMetrics:
    """CPU, memory, swap, disks and load: of this machine, now, or as a snapshot has them."""
    if snapshot is not None:
        return read_snapshot(snapshot).metrics(sections)
    found = HostMetrics()
    if "cpu" in sections:
        found["cpu"] = _cpu()
    if "memory" in sections:
        memory = psutil.virtual_memory()
        found["memory"] = Memory(
            total_bytes=memory.total,
            used_bytes=memory.total - memory.available,
            available_bytes=memory.available,
            used_percent=round(memory.percent, 1),
        )
    if "swap" in sections:
        swap = psutil.swap_memory()
        found["swap"] = Memory(
            total_bytes=swap.total, used_bytes=swap.used, available_bytes=swap.free, used_percent=round(swap.percent, 1)
        )
    if "load" in sections:
        one, five, fifteen = psutil.getloadavg()
        found["load"] = Load(
            load_1m=round(one, 2),
            load_5m=round(five, 2),
            load_15m=round(fifteen, 2),
            per_cpu_1m=round(one / (psutil.cpu_count() or 1), 2),
        )
    if "disks" in sections:
        found["disks"], found["disks_skipped"] = _disks()
    return found


def top_processes(
    run: RunContext,
    sort_by: Literal["cpu", "memory"] = "memory",
    limit: int = 5,
    *,
    snapshot: Path | None = None,
) -> TopProcesses:
    """The processes that use the most CPU or memory; CPU is watched for a moment first."""
    rows = _processes() if snapshot is None else read_snapshot(snapshot).processes
    rows = sorted(rows, key=lambda row: (-row["cpu_percent" if sort_by == "cpu" else "memory_bytes"], row["pid"]))
    return TopProcesses(
        sort_by=sort_by, process_count=len(rows), processes=rows[: max(1, min(limit, PROCESSES_SHOWN_MAX))]
    )


def _processes() -> list[Process]:
    """All that can be read, with the CPU that they use while they are watched."""
    watched = list(psutil.process_iter())
    for process in watched:
        _sampled_cpu(process)
    time.sleep(CPU_SAMPLE_S)
    return [row for process in watched if (row := _process(process)) is not None]


def _cpu() -> Cpu:
    times = psutil.cpu_times_percent(interval=CPU_SAMPLE_S)
    iowait = getattr(times, "iowait", None)
    return Cpu(
        cpu_count=psutil.cpu_count() or 1,
        used_percent=round(max(0.0, 100.0 - times.idle - (iowait or 0.0)), 1),
        iowait_percent=None if iowait is None else round(iowait, 1),
        watched_s=CPU_SAMPLE_S,
    )


def _disks() -> tuple[list[Disk], list[SkippedDisk]]:
    """Each file system once, under its shortest mount, the fullest first."""
    disks: dict[int, Disk] = {}
    skipped: list[SkippedDisk] = []
    for part in sorted(psutil.disk_partitions(all=True), key=lambda part: (len(part.mountpoint), part.mountpoint)):
        if part.fstype in NOT_DISKS:
            continue
        if part.fstype in NETWORK_FILESYSTEMS:
            skipped.append(SkippedDisk(mount=part.mountpoint, reason="network file system"))
            continue
        try:
            stat = Path(part.mountpoint).stat()
            if S_ISDIR(stat.st_mode) and stat.st_dev not in disks:
                disks[stat.st_dev] = _disk(part.mountpoint, part.device, part.fstype)
        except OSError as error:
            skipped.append(SkippedDisk(mount=part.mountpoint, reason=error.strerror or "unreadable"))
    real = [disk for disk in disks.values() if disk["total_bytes"] > 0]
    real.sort(key=lambda disk: (-disk["used_percent"], disk["mount"]))
    return real[:DISKS_SHOWN_MAX], skipped[:DISKS_SHOWN_MAX]


def _disk(mount: str, device: str, filesystem: str) -> Disk:
    usage = psutil.disk_usage(mount)
    return Disk(
        mount=mount,
        device=device,
        filesystem=filesystem,
        total_bytes=usage.total,
        used_bytes=usage.used,
        free_bytes=usage.free,
        used_percent=round(usage.percent, 1),
        inodes_used_percent=_inodes_used_percent(mount),
    )


def _inodes_used_percent(mount: str) -> float | None:
    """Share of inodes in use; None on file systems that make them as needed."""
    stat = os.statvfs(mount)
    return None if stat.f_files == 0 else round(100.0 * (stat.f_files - stat.f_ffree) / stat.f_files, 1)


def _sampled_cpu(process: psutil.Process) -> float:
    """CPU use since the last call for this process; 0 for one that has gone or is closed to us."""
    try:
        return process.cpu_percent(None)
    except psutil.Error:
        return 0.0


def _process(process: psutil.Process) -> Process | None:
    try:
        with process.oneshot():
            memory = process.memory_info().rss
            return Process(
                pid=process.pid,
                name=process.name()[:64],
                user=_user(process),
                cpu_percent=round(_sampled_cpu(process), 1),
                memory_bytes=memory,
                memory_percent=round(100.0 * memory / psutil.virtual_memory().total, 2),
            )
    except psutil.Error:
        return None


def _user(process: psutil.Process) -> str | None:
    try:
        return process.username()
    except (psutil.Error, KeyError):
        return None
