"""What stands in logs beside the trouble: the daily round, and troubles that are over or never were any."""

from collections.abc import Callable

from demo.baseline.machine import DAY_S, HOUR_S, MINUTE_S, Machine

ROUTINE = (
    "GET /v1/{word}/{n} 200 {ms}ms",
    "POST /v1/{word} 201 {ms}ms",
    "GET /healthz 200 1ms",
    "cache hit ratio 0.{n} over 60s",
    "error rate 0.0% over 5m",
    "connection pool stats: active={small} idle={n} waiting=0",
    "job {word}-refresh finished in {ms} ms",
    "retry budget 100% left, 0 failed calls in 5m",
    "loaded configuration revision {hex}",
    "session {hex} opened for user {n}",
    "heap {mb} MiB of 4096 MiB after minor collection",
    "GET /v1/{word}/{n} 404 {ms}ms",
)
WORDS = "items users carts prices tokens reports mails".split()
SYSTEM_ROUTINE = (
    ("systemd[1]", "Started session {n} of user deploy."),
    ("CRON[{n}]", "(root) CMD (run-parts /etc/cron.hourly)"),
    ("systemd[1]", "logrotate.service: Deactivated successfully."),
    ("sshd[{n}]", "Accepted publickey for deploy from 10.0.{small}.{small} port 5{n}"),
    ("chronyd[{n}]", "Selected source 10.0.{small}.1, system clock offset 0.0000{n} seconds"),
    ("kernel", "audit: type=1400 audit({n}.{small}): apparmor=ALLOWED operation=open"),
    ("smartd[{n}]", "Device: /dev/sda, SMART usage attribute 194 changed from {n} to {n}"),
)


def add_routine(machine: Machine) -> None:
    """The daily round of every service and of the machine, over the last day, more of it near the end."""
    draw = machine.draw
    for service in machine.services:
        for _ in range(draw.between(60, 110)):
            machine.say(service, _ago_s(machine), _filled(machine, draw.one(ROUTINE)))
    for _ in range(draw.between(40, 80)):
        program, text = draw.one(SYSTEM_ROUTINE)
        machine.system(_ago_s(machine), _filled(machine, program), _filled(machine, text))


def add_red_herrings(machine: Machine, count: int) -> None:
    """Troubles that do not explain anything now."""
    for herring in machine.draw.some(HERRINGS, count):
        herring(machine)


def other_service(machine: Machine) -> str:
    """Any but the one that people ask about."""
    return machine.draw.one(machine.services[1:])


def over_s(machine: Machine) -> float:
    """Some hours or days ago: in the current file, or in the rotated one."""
    return machine.draw.one((machine.draw.between(3, 8) * HOUR_S, machine.draw.between(1, 6) * DAY_S))


def _ago_s(machine: Machine) -> float:
    draw = machine.draw
    return draw.between(1, 90 * MINUTE_S) if draw.happens(60) else draw.between(1, DAY_S)


def _filled(machine: Machine, text: str) -> str:
    draw = machine.draw
    return text.format(
        word=draw.one(WORDS),
        n=draw.between(10, 99),
        ms=draw.between(2, 95),
        small=draw.between(1, 9),
        hex=draw.hex(8),
        mb=draw.between(600, 1400),
    )


def _old_disk_trouble(machine: Machine) -> None:
    service, ago_s = other_service(machine), over_s(machine)
    for number in range(machine.draw.between(3, 6)):
        machine.say(service, ago_s - number * 7, "write /srv/spool/out.tmp: no space left on device", "ERROR")
    machine.say(service, ago_s - 20 * MINUTE_S, "spool volume grown, free space is back to normal")


def _old_names_trouble(machine: Machine) -> None:
    service, ago_s = other_service(machine), over_s(machine)
    for number in range(machine.draw.between(3, 7)):
        text = "dial tcp: lookup metrics.internal: Temporary failure in name resolution"
        machine.say(service, ago_s - number * 11, text, "ERROR")
    machine.say(service, ago_s - 9 * MINUTE_S, "metrics.internal resolved, sending recovered")


def _old_pool_trouble(machine: Machine) -> None:
    service, ago_s = other_service(machine), over_s(machine)
    for number in range(machine.draw.between(3, 6)):
        machine.say(service, ago_s - number * 5, "timed out waiting for a connection from the pool (size 10)", "ERROR")
    machine.say(service, ago_s - 8 * MINUTE_S, "connection pool recovered: active=3 idle=7 waiting=0")


def _old_oom(machine: Machine) -> None:
    ago_s = machine.draw.between(1, 6) * DAY_S
    pid = machine.draw.between(1000, 9000)
    machine.system(ago_s, "kernel", f"Out of memory: Killed process {pid} (imagemagick) total-vm:9120334kB")


def _certificate_in_time(machine: Machine) -> None:
    days = machine.draw.between(12, 28)
    text = f"certificate for cdn.example.net expires in {days} days, renewal is scheduled"
    for number in range(3):
        machine.say(other_service(machine), number * 25 * MINUTE_S + 40, text, "WARN")


def _harmless_deploy(machine: Machine) -> None:
    service, ago_s = other_service(machine), machine.draw.between(4, 8) * HOUR_S
    version = f"{machine.draw.between(1, 9)}.{machine.draw.between(0, 40)}"
    machine.system(ago_s, "deployer", f"deployed {service} {version}.1 (was {version}.0)")
    machine.say(service, ago_s - 4, f"started, version {version}.1")


def _disk_worth_watching(machine: Machine) -> None:
    machine.set_disk("/backup", machine.draw.share(81, 88))


def _single_errors(machine: Machine) -> None:
    for text in machine.draw.some(
        (
            "upstream closed the connection, retried once: ok",
            "invalid credentials for user 4711",
            "client went away before the answer was sent",
            "unexpected field `colour` in request, ignored",
        ),
        2,
    ):
        machine.say(other_service(machine), machine.draw.between(1, 50) * MINUTE_S, text, "ERROR")


def _one_name_looked_up_in_vain(machine: Machine) -> None:
    ago_s = machine.draw.between(5, 45) * MINUTE_S
    machine.system(ago_s, "systemd-resolved[412]", "wpad.local: NXDOMAIN, as before; negative answer cached")


def _large_and_steady(machine: Machine) -> None:
    machine.process("postgres", cpu=machine.draw.share(2, 12), memory_percent=machine.draw.share(20, 28))


def _clock_was_corrected(machine: Machine) -> None:
    ago_s = over_s(machine)
    machine.system(ago_s, "chronyd[388]", "System clock wrong by 1.204411 seconds")
    machine.system(ago_s - 30, "chronyd[388]", "System clock was stepped, now synchronized")


HERRINGS: tuple[Callable[[Machine], None], ...] = (
    _old_disk_trouble,
    _old_names_trouble,
    _old_pool_trouble,
    _old_oom,
    _certificate_in_time,
    _harmless_deploy,
    _disk_worth_watching,
    _single_errors,
    _one_name_looked_up_in_vain,
    _large_and_steady,
    _clock_was_corrected,
)
