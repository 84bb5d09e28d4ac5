"""The causes of trouble that can be told apart, and by what signs in logs: the same words that real software writes."""

import re
from dataclasses import dataclass

from demo.rules.topics import CPU, DISK, MEMORY, NETWORK, SERVICE, Topic

HOST_NAME = r"(?P<what>(?:[a-z0-9][a-z0-9-]*\.)+[a-z]{2,})"


@dataclass(frozen=True, slots=True)
class Cause:
    """One kind of cause."""

    label: str
    """As an answer names it, in its line `Cause: `."""
    sentence: str
    """With `{what}` for what is concerned."""
    topic: Topic
    runbook_query: str
    sign: re.Pattern[str]
    """A log line with it shows this cause at work."""
    over: re.Pattern[str]
    """A later line with it in the same file says that it is over."""
    names: re.Pattern[str] | None = None
    """Where a sign names what is concerned; else that is the service that wrote it."""
    least_signs: int = 2


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


DISK_FULL = Cause(
    "disk full",
    "{what} has no room left",
    DISK,
    DISK.runbook_query,
    _words(r"no space left on device|\benospc\b|errno 28|disk quota exceeded"),
    _words(r"back to normal|space (?:was )?freed|volume grown"),
)
MEMORY_LEAK = Cause(
    "memory leak",
    "{what} takes more and more memory",
    MEMORY,
    MEMORY.runbook_query,
    _words(r"out of ?memory|oom-kill|\bmemoryerror\b|cannot allocate memory"),
    _words(r"memory (?:is )?back to normal|limit raised"),
    least_signs=1,
)
POOL_EXHAUSTED = Cause(
    "connection pool exhausted",
    "{what} gets no connection from its pool, since all of them are in use",
    SERVICE,
    "connection pool exhausted, waiting for a database connection",
    _words(
        r"connection pool exhausted|for a connection from the pool|connection is not available, request timed out"
        r"|queuepool limit|connection slots are reserved|too many (?:clients|connections)"
    ),
    _words(r"pool recovered"),
)
CERTIFICATE_EXPIRED = Cause(
    "certificate expired",
    "the certificate of {what} has expired",
    NETWORK,
    "certificate expired, TLS handshake fails, renewal",
    _words(
        r"certificate has expired(?! or)|cert_has_expired|certificateexpired"
        r"|has expired or is not yet valid: current time \S+ is after"
    ),
    _words(r"certificate (?:was )?renewed"),
    re.compile(HOST_NAME),
)
CLOCK_SKEW = Cause(
    "clock skew",
    "the clock of {what} is wrong",
    SERVICE,
    "clock skew, time synchronisation, tokens not yet valid",
    _words(
        r"system clock wrong by \d{2,}|clock skew|err_skew|too ?skewed|issued in the future|used before issued"
        r"|is not yet valid: current time \S+ is before|its time differs by \d+"
    ),
    _words(r"clock was stepped|now synchroni[sz]ed"),
    re.compile(r"skew: (?P<what>[\w.-]+) is|signature of (?P<peer>[\w.-]+) refused"),
)
DNS_FAILURE = Cause(
    "DNS failure",
    "{what} cannot be resolved",
    NETWORK,
    "DNS failure, names are not resolved, resolver",
    _words(
        r"name resolution|could not resolve|enotfound|no such host|unknownhost|servfail|nxdomain"
        r"|lookup \S+ on \S+: .*timeout"
    ),
    _words(r"resolved, |resolver recovered"),
    re.compile(rf"(?:lookup|host:|ENOTFOUND|Exception:) {HOST_NAME}"),
)
BAD_DEPLOY = Cause(
    "bad deploy",
    "the errors of {what} began with its new version",
    SERVICE,
    "bad deploy, errors after a new version, roll back",
    _words(
        r"deployed (?P<what>[\w.-]+) (?P<version>\d[\w.]*)"
        r"|rollout of (?P<what2>[\w.-]+) to (?P<version2>\d[\w.]*)"
        r"|(?P<what3>[\w.-]+): release (?P<version3>\d[\w.]*) is live"
    ),
    _words(r"rolled back"),
)
NOISY_NEIGHBOUR = Cause(
    "noisy neighbour",
    "{what} takes what the services of this machine need",
    CPU,
    CPU.runbook_query,
    _words(r"(?:cpu )?steal (?:time )?(?:[2-9]\d|\d{3})(?:\.\d+)?%"),
    _words(r"steal back to normal"),
)
NOTHING_WRONG = "nothing is wrong"
UNKNOWN = "unknown"

CAUSES = (
    CLOCK_SKEW,
    DISK_FULL,
    MEMORY_LEAK,
    DNS_FAILURE,
    CERTIFICATE_EXPIRED,
    NOISY_NEIGHBOUR,
    BAD_DEPLOY,
    POOL_EXHAUSTED,
)
"""What comes first brings about what comes later, and hardly the other way round."""
LABELS = (*(cause.label for cause in CAUSES), NOTHING_WRONG, UNKNOWN)

OVER = r"recovered|back to normal|resolved, |synchronized|renewed|rolled back|grown"
LEVELS = r'\b(?-i:ERROR|FATAL|CRITICAL|PANIC)\b|level"?[=:] ?"?(?:error|fatal|critical)'
READINGS = r"(?:heap|rss|memory)\D{1,12}\d+ ?(?:MiB|MB)"
# For search_logs, each with what it is for; RE2, and no longer than it takes.
CAUSE_PATTERNS = {
    rf"no space left|enospc|disk quota|out of ?memory|oom-kill|memoryerror|cannot allocate|{OVER}": (
        "search the logs for lack of space and memory"
    ),
    (
        r"from the pool|connection pool (?:exhausted|recovered)|is not available, request timed out|queuepool"
        r"|connection slots|too many (?:clients|connections)"
        r"|name resolution|not resolve|enotfound|no such host|unknownhost|servfail|nxdomain|lookup \S+ on|resolved, "
    ): "search the logs for connections that are missing and names that are not resolved",
    r"certificate|cert_has|x509|clock|skew|issued in the future|used before issued|time differs": (
        "search the logs for certificates and clocks"
    ),
    r"\bdeployed \S+ \d|rollout of|: release \d\S* is live|rolled back|\bsteal\b|blocked for more|slow request": (
        "search the logs for new versions and slow answers"
    ),
    LEVELS: "search the logs for errors",
}
CAUSE_SEARCHES = frozenset({*CAUSE_PATTERNS, READINGS})
