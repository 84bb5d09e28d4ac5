"""Erasures as pages show them: what may be done about one, and what it is of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ledger.words.codes import plain
from viewer.erasing.known import Erasure
from viewer.present.sentence import Moment, Sentence, sentence
from viewer.words import N_
from viewer.words import gettext as _

REASONS = (
    ("SUBJECT_REQUEST", N_("the person concerned asked for it")),
    ("SECRET", N_("a secret is in it")),
    ("MISTAKE", N_("it was recorded by mistake")),
    ("REQUESTED", N_("another one")),
)
"""The codes that the form offers; programs may give any."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """An erasure that waits for its second person."""

    request_id: str
    what: Sentence
    about: str
    """Ids and digests."""
    asked_by: str
    asked_us: int
    expires_us: int
    reason: str
    is_own: bool
    """Whether whoever looks asked for it."""


def waiting(erasures: Iterable[Erasure], owner: str | None) -> Sequence[Waiting]:
    """Those that nobody has confirmed yet and somebody still can, as `owner` sees them."""
    return [_waiting(each, owner) for each in erasures if each.state == "asked"]


def of_run(erasures: Iterable[Erasure], session_id: str, run_id: str) -> list[Erasure]:
    """Those that are about this run, or about all of its session."""
    return [each for each in erasures if each.what.session_id == session_id and each.what.run_id in (run_id, None)]


def _waiting(erasure: Erasure, owner: str | None) -> Waiting:
    what, facts = erasure.what, erasure
    assert facts.request_id is not None
    assert facts.asked_us is not None
    assert facts.expires_us is not None
    before = Moment(what.before_us or 0)
    things: dict[str, Sentence] = {
        "RUN": [_("all contents of a run")],
        "SESSION": [_("all contents of a session")],
        "DIGEST": [_("one content")],
        "RETENTION": sentence(_("all contents of runs that ended before %(time)s"), time=before),
    }
    about = "/".join(filter(None, (what.session_id, what.run_id, what.digest)))
    return Waiting(
        facts.request_id,
        things.get(what.scope, [plain(what.scope)]),
        about,
        facts.asked_by or "",
        facts.asked_us,
        facts.expires_us,
        plain(what.reason),
        is_own=owner is not None and owner == facts.asked_by,
    )
