"""Faults of the machine itself: no space, no memory, a neighbour that takes it all, a clock that is wrong.

Each puts its traces on a machine and says by what words an answer shows that it has found the culprit.
"""

from collections.abc import Sequence
from datetime import timedelta

from demo.baseline.draw import Draw
from demo.baseline.machine import HOUR_S, MINUTE_S, Machine
from demo.baseline.noise import other_service

Culprits = tuple[str, ...]


def began_s(machine: Machine) -> int:
    """How long ago the trouble began."""
    return machine.draw.between(8, 48) * MINUTE_S


def spread_s(machine: Machine, since_s: float, count: int) -> list[float]:
    """So many moments from then until now, the first of them right then."""
    gap_s = since_s / count
    return [max(2.0, since_s - number * gap_s - machine.draw.between(0, 9) / 10 * gap_s) for number in range(count)]


def wording(draw: Draw, usual: Sequence[str], unusual: str) -> str:
    """How a program puts it: in one of ten cases in words that the offline model's rules were never shown."""
    return unusual if draw.happens(10) else draw.one(usual)


def slow_requests(machine: Machine, service: str, since_s: float) -> None:
    """What users notice: answers that take long."""
    for ago_s in spread_s(machine, since_s, machine.draw.between(5, 9)):
        machine.say(service, ago_s, f"slow request: took {machine.draw.between(2100, 9800)} ms", "WARN")


def failed_requests(machine: Machine, service: str, since_s: float) -> None:
    """What users notice: answers that are errors."""
    for ago_s in spread_s(machine, since_s, machine.draw.between(4, 8)):
        machine.say(service, ago_s, f"POST /v1/{machine.draw.one(('items', 'prices'))} 500", "ERROR")


def disk_full(machine: Machine) -> Culprits:
    """No space left, or no inode; sometimes what waits for the full disk complains more loudly."""
    draw, since_s = machine.draw, began_s(machine)
    mount = draw.one(("/var", "/data/pg", "/srv/uploads", "/opt/spool"))
    of_inodes = draw.happens(30)
    machine.set_disk(
        mount,
        draw.share(35, 60) if of_inodes else draw.share(98, 100),
        inodes_used_percent=draw.share(99, 100) if of_inodes else None,
    )
    text = draw.one(
        (
            f"OSError: [Errno 28] No space left on device: '{mount}/parts/{draw.hex(6)}'",
            f"open {mount}/queue/{draw.hex(6)}: no space left on device",
            f'PANIC: could not write to file "{mount}/xlogtemp.{draw.between(100, 999)}": No space left on device',
            f"Error: ENOSPC: no space left on device, write '{mount}/{draw.hex(4)}.log'",
        )
    )
    for ago_s in spread_s(machine, since_s, draw.between(4, 10)):
        machine.say(machine.service, ago_s, text, "ERROR")
    if draw.happens(40):
        for ago_s in spread_s(machine, since_s - 2 * MINUTE_S, 4):
            waits = "timed out waiting for a connection from the pool (size 20, in use 20)"
            machine.say(other_service(machine), ago_s, waits, "ERROR")
    failed_requests(machine, machine.service, since_s - MINUTE_S)
    return (mount,)


def memory_leak(machine: Machine) -> Culprits:
    """One process grows until the kernel, or its own runtime, ends it."""
    draw, since_s = machine.draw, began_s(machine)
    machine.set_memory(draw.share(89, 97))
    machine.change_process(machine.service, memory_percent=draw.share(48, 74), cpu_percent=draw.share(15, 60))
    first_mb, last_mb = draw.between(400, 900), draw.between(3600, 5200)
    words = draw.one(("heap {} MiB of 6144 MiB after full collection", "rss={} MiB", "memory in use: {} MiB"))
    readings = 9
    for number in range(readings):
        grown_mb = first_mb + (last_mb - first_mb) * number // (readings - 1)
        ago_s = (6 * HOUR_S - 60) * (readings - 1 - number) / (readings - 1) + 30
        machine.say(machine.service, ago_s, words.format(grown_mb), "WARN" if number > 5 else "INFO")
    pid = draw.between(1000, 60_000)
    end = draw.one(("kernel", "runtime", "none"))
    if end == "kernel":
        killed = f"Out of memory: Killed process {pid} ({machine.service}) total-vm:{draw.between(5, 9)}201334kB"
        machine.system(since_s, "kernel", killed)
        machine.system(since_s - 2, "systemd[1]", f"{machine.service}.service: Failed with result 'oom-kill'.")
    elif end == "runtime":
        text = draw.one(("java.lang.OutOfMemoryError: Java heap space", "MemoryError", "JavaScript heap out of memory"))
        for ago_s in spread_s(machine, since_s, 3):
            machine.say(machine.service, ago_s, text, "ERROR")
    slow_requests(machine, machine.service, since_s)
    return (machine.service,)


def noisy_neighbour(machine: Machine) -> Culprits:
    """Another program, or another virtual machine on the same iron, takes the CPU or the disk."""
    draw, since_s = machine.draw, began_s(machine)
    slow_requests(machine, machine.service, since_s)
    kind = draw.one(("cpu", "disk", "steal"))
    if kind == "steal":
        machine.set_cpu(draw.share(55, 75), per_cpu=draw.share(1.2, 2.4))
        for ago_s in spread_s(machine, since_s, 4):
            text = f"cpu steal {draw.share(28, 61)}% over 60s, the hypervisor gives this guest less than it asks for"
            machine.system(ago_s, "node-exporter[701]", text)
        return ("hypervisor", "steal")
    cpus = machine.figures["cpu"]["cpu_count"]
    if kind == "cpu":
        name = draw.one(("ffmpeg", "xmrig", "blender", "clamscan", "gcc", "tar"))
        machine.process(name, cpu=draw.share(70, 95) * cpus, memory_percent=draw.share(1, 4), user="batch")
        machine.set_cpu(draw.share(93, 99), per_cpu=draw.share(1.4, 4.5))
    else:
        name = draw.one(("rsync", "pg_dump", "restic", "updatedb"))
        machine.process(name, cpu=draw.share(55, 95), memory_percent=draw.share(0.5, 3), user="backup")
        machine.set_cpu(draw.share(25, 45), iowait_percent=draw.share(38, 66), per_cpu=draw.share(1.6, 5.0))
        blocked = f"INFO: task {machine.service}:{draw.between(1000, 9999)} blocked for more than 120 seconds."
        machine.system(since_s / 2, "kernel", blocked)
    machine.system(since_s + 20, f"CRON[{draw.between(1000, 9999)}]", f"(batch) CMD (nice /usr/local/bin/{name}-all)")
    return (name,)


def clock_skew(machine: Machine) -> Culprits:
    """This machine's clock, or that of another, is minutes off: what is signed is not valid yet, or no longer."""
    draw, since_s = machine.draw, began_s(machine)
    off_s = draw.between(180, 4000)
    now, later = (f"{at:%Y-%m-%dT%H:%M:%SZ}" for at in (machine.now, machine.now + timedelta(seconds=off_s)))
    own = draw.happens(60)
    host = machine.host if own else f"{draw.one(('db', 'auth', 'kdc'))}-{draw.between(2, 9)}"
    if own:
        machine.system(since_s + 30, "chronyd[388]", "Can't synchronise: no selectable sources")
        for ago_s in spread_s(machine, since_s, 3):
            machine.system(ago_s, "chronyd[388]", f"System clock wrong by {off_s}.{draw.between(1, 9)} seconds")
    elsewhere = wording(
        draw,
        (
            f"clock skew: {host} is {off_s} s behind this host",
            f"request signature of {host} refused: its time differs by {off_s} s, 300 s are allowed",
        ),
        f"heartbeat of {host} is dated {off_s} s in the past, though it came just now",
    )
    for ago_s in spread_s(machine, since_s, draw.between(4, 9)):
        here = draw.one(
            (
                f"token refused: issued in the future (iat is {off_s} s ahead)",
                "KRB5KRB_AP_ERR_SKEW: Clock skew too great",
                f"x509: certificate has expired or is not yet valid: current time {now} is before {later}",
            )
        )
        machine.say(machine.service, ago_s, here if own else elsewhere, "ERROR")
    failed_requests(machine, machine.service, since_s)
    return (host,)
