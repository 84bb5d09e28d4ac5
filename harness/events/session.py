"""Events of a session's own stream (SPEC D2)."""

from typing import Literal

from harness.events.base import Count, SessionEvent


class SessionOpened(SessionEvent):
    """The session exists from now on."""

    type: Literal["session.opened"] = "session.opened"
    version: Literal[1] = 1
    ttl_us: Count | None = None
    """How long after its last activity the session expires; left out where it never does."""
