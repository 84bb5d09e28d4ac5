"""Events of a session's own stream (SPEC D2)."""

from typing import Literal

from harness.events.base import Count, Name, SessionEvent


class SessionOpened(SessionEvent):
    """The session exists from now on."""

    type: Literal["session.opened"] = "session.opened"
    version: Literal[1] = 1
    ttl_us: Count | None = None
    """How long after its last activity the session expires; left out where it never does."""


class SessionContextCleared(SessionEvent):
    """What later runs are told of earlier ones was forgotten; the runs themselves are as they were."""

    type: Literal["session.context_cleared"] = "session.context_cleared"
    version: Literal[1] = 1
    actor: Name | None = None
