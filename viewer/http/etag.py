"""The entity tag of a trace: a hash over everything that can change what it says (SPEC D16)."""

import hashlib
from collections.abc import Sequence

from ledger.projections.rows import FOLD_VERSION
from ledger.records import RunTrace
from viewer.api.bodies import canonical, session_body

TRACE_FORMAT = 2
"""Raised whenever the same rows would be given as another body; `FOLD_VERSION` is the version of the rows."""


def trace_etag(trace: RunTrace) -> str:
    """Strong tag over the run's head, the session row with its computed status, and the projection's version."""
    facts = [TRACE_FORMAT, FOLD_VERSION, trace.run.head_link, trace.run.event_count, session_body(trace.chat_session)]
    return f'"{hashlib.sha256(canonical(facts)).hexdigest()[:32]}"'


def matches(if_none_match: Sequence[str], etag: str) -> bool:
    """Whether the client's `If-None-Match`, in any number of header lines, names `etag`, by weak comparison."""
    tags = [tag.strip().removeprefix("W/") for line in if_none_match for tag in line.split(",")]
    return etag in tags or tags == ["*"]
