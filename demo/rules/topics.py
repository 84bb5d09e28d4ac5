"""What a question is about: words that name a topic, and for each topic where its evidence is to be found."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

# Words that stand by themselves, so that a package called libgpg-error is not taken for an error.
ERRORS = (
    r"(?:^|[\s\[(=:<])(?:errors?|failed|failure|fatal|panic|critical|exception|traceback|segfault)(?:[\s:\]),.;>]|$)"
)


@dataclass(frozen=True, slots=True)
class Topic:
    """One kind of trouble."""

    name: str
    label: str
    words: str
    """Regular expression: a question with any of these words is about this topic."""
    log_pattern: str
    """Empty where logs tell nothing of it."""
    runbook_query: str
    sections: tuple[str, ...] = ()
    """Sections of host_metrics that measure it."""
    processes_by: str | None = None


DISK = Topic(
    "disk",
    "disk space",
    r"disks?|storage|file ?systems?|partitions?|inodes?|mounts?|volumes?|(?:free|out of) space|space left",
    r"no space left on device|disk (?:is )?full|disk quota exceeded|read-only file ?system|i/o error",
    "disk full, no space left",
    sections=("disks",),
)
MEMORY = Topic(
    "memory",
    "memory",
    r"memory|ram|swap(?:ping)?|oom|out of memory|heap",
    r"out of memory|oom-kill|oom_reaper|killed process|cannot allocate memory",
    "memory pressure, out of memory, OOM killer",
    sections=("memory", "swap"),
    processes_by="memory",
)
CPU = Topic(
    "cpu",
    "CPU",
    r"cpus?|load(?: average)?|busy|processors?|slow|cores?",
    r"soft lockup|blocked for more than|hung task|cpu clock throttled|watchdog: bug",
    "high CPU load, busy processes",
    sections=("cpu", "load"),
    processes_by="cpu",
)
SERVICE = Topic(
    "service",
    "services",
    r"services?|systemd|units?|daemons?|crash(?:es|ed|ing)?|(?:not|won't|does not|doesn't|fails? to) start|restarts?",
    r"failed to start|failed with result|main process exited|start request repeated too quickly|core dumped|segfault",
    "service does not start, failed unit",
)
NETWORK = Topic(
    "network",
    "the network",
    r"network|dns|connections?|connect|time ?-?outs?|timed out|unreachable|latency|ports?|sockets?",
    r"connection (?:refused|reset|timed out)|network is unreachable|no route to host|name resolution|failed to connect",
    "network connection refused, timed out, name resolution",
)
LOGS = Topic(
    "logs",
    "errors in the logs",
    r"logs?|errors?|exceptions?|warnings?|fail(?:ed|ures?|ing)?|problems?",
    ERRORS,
    "errors in the logs",
)
ALERTS = Topic(
    "alerts",
    "alerts and targets in Prometheus",
    r"alerts?|alarms?|firing|prometheus|scrape targets?|targets? (?:is |are )?down",
    log_pattern="",
    runbook_query="an alert is firing in Prometheus, a target is down",
)
LOG_ACCESS = Topic("log_access", "why no log was read", words="", log_pattern="", runbook_query="")
"""No topic of questions, but one of findings."""
TOPICS = (DISK, MEMORY, CPU, SERVICE, NETWORK, LOGS, ALERTS)

# A question about the machine as a whole.
WHOLE_MACHINE = re.compile(
    r"\b(?:whole|health|healthy|overall|everything|anything (?:wrong|unusual)|check[- ]?up|status|"
    r"how (?:is|are) (?:this|the|my|our) (?:machine|host|server|system|box)|"
    r"(?:check|diagnose|inspect) (?:this|the|my|our) (?:machine|host|server|system|box))\b",
    re.IGNORECASE,
)
WHOLE_MACHINE_TOPICS = (DISK, MEMORY, CPU, LOGS)

FOLLOW_UP = re.compile(
    r"^\W*(?:and|also|but|then|what about|how about|ok(?:ay)?,? (?:and|but))\b"
    r"|\b(?:its?|that|those|these|them|there|the same)\b",
    re.IGNORECASE,
)
DEFINITION = re.compile(r"^\W*(?:what(?:'s| is| are| does)|explain|define|describe)\b", re.IGNORECASE)
LIVE = re.compile(
    r"\b(?:this|my|our|here|now|current(?:ly)?|today|machine|host|server|using|used|left|free|full|"
    r"close|how much|how many|check|why|top|most|its?)\b",
    re.IGNORECASE,
)
CAUSE_WANTED = re.compile(
    r"\b(?:why|(?:root )?causes?|caused|what(?:'s| is) (?:wrong|the matter)|what happened|diagnose|"
    r"is (?:anything|something) wrong)\b",
    re.IGNORECASE,
)
EXPLAINS = re.compile(r"^\W*(?:explain|define|describe)\b", re.IGNORECASE)
QUOTED = re.compile(r"[`\"“]([^`\"”\n]{3,200})[`\"”]")


def topics_in(text: str) -> tuple[Topic, ...]:
    """The topics that a text names, in a fixed order."""
    found = tuple(topic for topic in TOPICS if re.search(rf"\b(?:{topic.words})\b", text, re.IGNORECASE))
    return found or (WHOLE_MACHINE_TOPICS if WHOLE_MACHINE.search(text) else ())


@dataclass(frozen=True, slots=True)
class Subject:
    """What a question is about, after looking at what was asked before."""

    question: str
    topics: tuple[Topic, ...]
    carried_over: tuple[Topic, ...]
    """The topics among them that only the conversation names."""
    quoted: tuple[str, ...]
    """Texts in quotation marks: to be searched for as they are."""

    @property
    def whole_machine(self) -> bool:
        return set(WHOLE_MACHINE_TOPICS) <= set(self.topics)

    @property
    def logs_only(self) -> bool:
        """A question about logs alone, such as "and what do its logs say?"."""
        return bool(self.carried_over) and LOGS in self.topics

    @property
    def wants_cause(self) -> bool:
        """Whether it asks why something is as it is."""
        return bool(CAUSE_WANTED.search(QUOTED.sub(" ", self.question))) and not EXPLAINS.search(self.question)

    @property
    def needs_evidence(self) -> bool:
        """Whether this machine has to be looked at, rather than a word explained."""
        explains = DEFINITION.search(self.question) and not LIVE.search(self.question) and not self.carried_over
        return bool(self.quoted) or self.wants_cause or (bool(self.topics) and not explains)


def subject_of(question: str, earlier: Sequence[str]) -> Subject:
    """Read a question; where it only points back ("and its logs?"), the topics of the latest one that had any."""
    quoted = tuple(match.strip() for match in QUOTED.findall(question))[:3]
    own = topics_in(QUOTED.sub(" ", question))
    carried: tuple[Topic, ...] = ()
    if FOLLOW_UP.search(question) and set(own) <= {LOGS} and not quoted:
        before = (topics_in(text) for text in reversed(earlier))
        carried = tuple(topic for topic in next((found for found in before if found), ()) if topic not in own)
    return Subject(question, tuple(topic for topic in TOPICS if topic in own or topic in carried), carried, quoted)
