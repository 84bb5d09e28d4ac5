"""Entity tags of what is read of one run: hashes over everything that can change what it says (SPEC D16)."""

import hashlib
from collections.abc import Sequence

import orjson
from starlette.responses import Response

from ledger.projections.rows import FOLD_VERSION
from ledger.records import RecordedEvent, RunTrace
from viewer.api.bodies import session_body

BODY_FORMAT = 2
"""Raised whenever the same rows would be given as another body; `FOLD_VERSION` is the version of the rows."""


def run_etag(run: RunTrace, form: str = "json") -> str:
    """Strong tag over the run's head, the session row with its computed status, and the projection's version.

    `form` tells apart what one address may give, each with its own bytes.
    """
    facts = [BODY_FORMAT, FOLD_VERSION, run.run.head_link, run.run.event_count, session_body(run.chat_session), form]
    return f'"{hashlib.sha256(orjson.dumps(facts, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]}"'


def event_etag(event: RecordedEvent) -> str:
    """Strong tag of one event, which never changes; its link commits to all that is said of it."""
    return f'"{BODY_FORMAT}-{event.link}"'


def tagged(etag: str) -> dict[str, str]:
    """The headers of an answer that may be kept, and is asked about each time."""
    return {"ETag": etag, "Cache-Control": "private, no-cache"}


def not_modified(etag: str) -> Response:
    """The client has it already."""
    return Response(status_code=304, headers=tagged(etag))


def matches(if_none_match: Sequence[str], etag: str) -> bool:
    """Whether the client's `If-None-Match`, in any number of header lines, names `etag`, by weak comparison."""
    tags = [tag.strip().removeprefix("W/") for line in if_none_match for tag in line.split(",")]
    return etag in tags or tags == ["*"]
