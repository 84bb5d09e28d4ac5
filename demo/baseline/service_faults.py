"""Faults of what services depend on: connections, certificates, names, and their own new version."""

from demo.baseline.machine import HOUR_S, MINUTE_S, Machine
from demo.baseline.resource_faults import Culprits, began_s, failed_requests, slow_requests, spread_s, wording


def pool_exhausted(machine: Machine) -> Culprits:
    """Every connection to the database is in use, and who wants one waits in vain."""
    draw, since_s = machine.draw, began_s(machine)
    size = draw.one((5, 10, 20, 40))
    text = wording(
        draw,
        (
            f"timed out waiting for a connection from the pool (size {size}, in use {size}, waiting {size + 7})",
            f"HikariPool-1 - Connection is not available, request timed out after {draw.between(5, 30)}000ms",
            f"QueuePool limit of size {size} overflow 0 reached, connection timed out, timeout 30.00",
            f"connection pool exhausted: {size} of {size} in use",
            "FATAL: remaining connection slots are reserved for roles with the SUPERUSER attribute",
        ),
        f"acquire timeout: all {size} slots busy for 30 s",
    )
    for ago_s in spread_s(machine, since_s, draw.between(5, 11)):
        machine.say(machine.service, ago_s, text, "ERROR")
    slow_requests(machine, machine.service, since_s)
    return (machine.service,)


def certificate_expired(machine: Machine) -> Culprits:
    """A certificate was not renewed in time, of this machine or of what it calls."""
    draw, since_s = machine.draw, began_s(machine)
    peer = f"{draw.one(('pay', 'id', 'files', 'mq'))}.{draw.one(('corp.example', 'partner.example'))}"
    text = wording(
        draw,
        (
            f"Get https://{peer}/v1: x509: certificate has expired or is not yet valid: {_times(machine)}",
            f"SSLError: {peer}:443 certificate verify failed: certificate has expired (_ssl.c:1006)",
            f"TLS handshake with {peer} failed: CERT_HAS_EXPIRED",
            f"PKIX path validation failed for {peer}: CertificateExpiredException: NotAfter: {_day(machine)}",
        ),
        f"{peer} presented a certificate whose validity ended on {_day(machine)}",
    )
    for ago_s in spread_s(machine, since_s, draw.between(4, 10)):
        machine.say(machine.service, ago_s, text, "ERROR")
    if draw.happens(50):
        machine.system(since_s + 3 * HOUR_S, "certbot[2210]", f"failed to renew certificate {peer}: challenge refused")
    failed_requests(machine, machine.service, since_s)
    return (peer,)


def names_unresolved(machine: Machine) -> Culprits:
    """Names are not resolved any more, so what is called by name seems to be away."""
    draw, since_s = machine.draw, began_s(machine)
    name = f"{draw.one(('db', 'cache', 'payments', 'queue'))}.{draw.one(('internal', 'svc.cluster.local'))}"
    resolver = f"10.{draw.between(0, 9)}.0.{draw.between(2, 53)}"
    text = wording(
        draw,
        (
            f"dial tcp: lookup {name} on {resolver}:53: read udp: i/o timeout",
            f"could not resolve host: {name}",
            f"getaddrinfo ENOTFOUND {name}",
            f"java.net.UnknownHostException: {name}: Temporary failure in name resolution",
            f"lookup {name}: server misbehaving (SERVFAIL)",
        ),
        f"{name}: nodename nor servname provided, or not known",
    )
    for ago_s in spread_s(machine, since_s, draw.between(4, 10)):
        machine.say(machine.service, ago_s, text, "ERROR")
    if draw.happens(50):
        for ago_s in spread_s(machine, since_s, 3):
            degraded = f"Using degraded feature set UDP instead of UDP+EDNS0 for DNS server {resolver}."
            machine.system(ago_s, "systemd-resolved[412]", degraded)
    if draw.happens(40):
        for ago_s in spread_s(machine, since_s - MINUTE_S, 3):
            machine.say(machine.service, ago_s, "connection pool exhausted: 10 of 10 in use", "ERROR")
    failed_requests(machine, machine.service, since_s)
    return (name, resolver)


def bad_deploy(machine: Machine) -> Culprits:
    """A new version brought an error; sometimes it also holds on to what it should give back."""
    draw, since_s, service = machine.draw, began_s(machine), machine.service
    major, minor = draw.between(1, 9), draw.between(1, 40)
    version, before = f"{major}.{minor}.{draw.between(0, 5)}", f"{major}.{minor - 1}.{draw.between(0, 9)}"
    deployed_s = since_s + draw.between(20, 240)
    told = wording(
        draw,
        (
            f"deployed {service} {version} (was {before})",
            f"rollout of {service} to {version} finished, {before} stopped",
            f"{service}: release {version} is live, previous release {before}",
        ),
        f"switched {service} from image :{before} to image :{version}",
    )
    machine.system(deployed_s, f"deployer[{draw.between(100, 999)}]", told)
    machine.say(service, deployed_s - 5, f"started, version {version}")
    text = draw.one(
        (
            "java.lang.NullPointerException: Cannot invoke “Price.currency()” because “price” is null",
            "KeyError: 'shipping_zone'",
            "TypeError: Cannot read properties of undefined (reading 'total')",
            'ERROR: column "discount_code" does not exist',
            "panic: runtime error: index out of range [3] with length 3",
            "unknown configuration key `retry.backoff`, request refused",
        )
    )
    for ago_s in spread_s(machine, since_s, draw.between(5, 11)):
        machine.say(service, ago_s, text, "ERROR")
    if draw.happens(30):
        for ago_s in spread_s(machine, since_s / 2, 4):
            machine.say(service, ago_s, "connection pool exhausted: 20 of 20 in use", "ERROR")
    if draw.happens(30):
        machine.change_process(service, cpu_percent=draw.share(60, 95))
    failed_requests(machine, service, since_s)
    return (version, service)


def _day(machine: Machine) -> str:
    return f"{machine.now:%Y-%m-%d}"


def _times(machine: Machine) -> str:
    """As Go's library words it."""
    return f"current time {machine.now:%Y-%m-%dT%H:%M:%SZ} is after {_day(machine)}T00:00:00Z"
