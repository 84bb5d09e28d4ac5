"""What is decided about the ledger itself: keys, tokens, access, erasure, retention, restoring (SPEC D2).

Whom a decision is about stands in `of_session_id` and `of_run_id`, since the event belongs to no session and no run.
"""

from typing import Literal

from harness.events.base import Code, Count, Digest, Id, Integer, Name, SystemEvent
from harness.events.erasure import ErasureScope, ErasureStage


class KeyCreated(SystemEvent):
    """A key is used from now on."""

    type: Literal["key.created"] = "key.created"
    version: Literal[1] = 1
    key_id: Id
    purpose: Code
    algorithm: Code
    fingerprint: Digest | None = None
    """SHA-256 of the public part."""
    actor: Name | None = None


class KeyRotated(SystemEvent):
    """`key_id` takes the place of `replaced_key_id`, which goes on verifying what it signed."""

    type: Literal["key.rotated"] = "key.rotated"
    version: Literal[1] = 1
    key_id: Id
    replaced_key_id: Id
    purpose: Code
    algorithm: Code
    fingerprint: Digest | None = None
    actor: Name | None = None


class KeyRevoked(SystemEvent):
    """Nothing that the key signs from now on counts."""

    type: Literal["key.revoked"] = "key.revoked"
    version: Literal[1] = 1
    key_id: Id
    reason: Code
    actor: Name | None = None


class TokenCreated(SystemEvent):
    """Whoever holds the token may do what `grants` stands for."""

    type: Literal["token.created"] = "token.created"
    version: Literal[1] = 1
    token_id: Id
    """Names the token; the token itself is in no event."""
    grants: Code
    """Its rights, with dots between them: `read.annotate`."""
    owner: Name | None = None
    """Who holds it: a pseudonym, as it is kept for ever."""
    session_prefix: Id | None = None
    """How the ids of the only sessions begin that it opens; absent where it opens all."""
    expires_us: Integer | None = None
    actor: Name | None = None


class TokenRevoked(SystemEvent):
    """The token opens nothing any more."""

    type: Literal["token.revoked"] = "token.revoked"
    version: Literal[1] = 1
    token_id: Id
    reason: Code
    actor: Name | None = None


class AccessRecorded(SystemEvent):
    """Somebody asked to see or to do something, and was let or was not."""

    type: Literal["access.recorded"] = "access.recorded"
    version: Literal[1] = 1
    action: Code
    allowed: bool
    reason: Code | None = None
    token_id: Id | None = None
    actor: Name | None = None
    of_session_id: Id | None = None
    of_run_id: Id | None = None


class ErasureRequested(SystemEvent):
    """Somebody asks that content be erased; another one confirms it, or nothing comes of it."""

    type: Literal["erasure.requested"] = "erasure.requested"
    version: Literal[1] = 1
    request_id: Id
    scope: ErasureScope
    reason: Code
    actor: Name
    expires_us: Integer
    """From then on it can no longer be confirmed."""
    of_session_id: Id | None = None
    of_run_id: Id | None = None
    digest: Digest | None = None
    before_us: Integer | None = None
    """As in `retention.decided`."""


class ErasureDecided(SystemEvent):
    """Content is to be erased; what is done of it stands in the runs' own `content.erased`."""

    type: Literal["erasure.decided"] = "erasure.decided"
    version: Literal[1] = 1
    erasure_id: Id
    scope: ErasureScope
    reason: Code
    actor: Name | None = None
    of_session_id: Id | None = None
    of_run_id: Id | None = None
    digest: Digest | None = None
    request_id: Id | None = None
    """The request that `actor` confirmed; absent where one person was enough."""


class RetentionDecided(SystemEvent):
    """The contents of all runs that ended before `before_us` are to be erased."""

    type: Literal["retention.decided"] = "retention.decided"
    version: Literal[1] = 1
    erasure_id: Id
    before_us: Integer
    reason: Code
    actor: Name | None = None
    request_id: Id | None = None
    """As in `erasure.decided`."""


class ErasureFinished(SystemEvent):
    """All of a decided erasure is done, up to and with `stage`."""

    type: Literal["erasure.finished"] = "erasure.finished"
    version: Literal[1] = 1
    erasure_id: Id
    stage: ErasureStage
    run_count: Count
    content_count: Count
    size_bytes: Count


class LedgerRestored(SystemEvent):
    """From here on the log is another one than that of the ledger whose backup this was, and of other copies of it."""

    type: Literal["ledger.restored"] = "ledger.restored"
    version: Literal[1] = 1
    restore_id: Id
    backup_id: Id | None = None
    """Absent where the file was copied by other means."""
    backup_us: Integer | None = None
    event_count: Count
    """Events of the log that was restored."""
