"""The shape of a machine's figures, measured live or read from a snapshot."""

from typing import Literal

from typing_extensions import TypedDict

Section = Literal["cpu", "memory", "swap", "disks", "load"]
SECTIONS: tuple[Section, ...] = ("cpu", "memory", "swap", "disks", "load")


class Cpu(TypedDict):
    """How busy the processors were while they were watched."""

    cpu_count: int
    used_percent: float
    iowait_percent: float | None
    watched_s: float


class Memory(TypedDict):
    """Memory, or swap: what can still be had is `available_bytes`."""

    total_bytes: int
    used_bytes: int
    available_bytes: int
    used_percent: float


class Load(TypedDict):
    """Processes that run or wait for a disk, on average over one, five and fifteen minutes."""

    load_1m: float
    load_5m: float
    load_15m: float
    per_cpu_1m: float


class Disk(TypedDict):
    """One mounted file system."""

    mount: str
    device: str
    filesystem: str
    total_bytes: int
    used_bytes: int
    free_bytes: int
    used_percent: float
    inodes_used_percent: float | None


class SkippedDisk(TypedDict):
    """A file system that was not measured, and why."""

    mount: str
    reason: str


class HostMetrics(TypedDict, total=False):
    """Only the sections that were asked for."""

    cpu: Cpu
    memory: Memory
    swap: Memory
    load: Load
    disks: list[Disk]
    disks_skipped: list[SkippedDisk]


class Process(TypedDict):
    """One process; its command line is left out, since it may hold secrets."""

    pid: int
    name: str
    user: str | None
    cpu_percent: float
    memory_bytes: int
    memory_percent: float


class TopProcesses(TypedDict):
    """The largest processes by what was asked for, of all that could be read."""

    sort_by: Literal["cpu", "memory"]
    process_count: int
    processes: list[Process]
