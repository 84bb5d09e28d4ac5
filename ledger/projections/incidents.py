"""What a run's events tell that a plain course does not have, counted by kind."""

from __future__ import annotations

from typing import cast

from harness import events as e

KINDS = {
    "hidden_retry.detected": "hidden_retries",
    "scope.exhausted": "scopes_exhausted",
    "limit.would_reject": "limits_passed",
    "policy.decided": "calls_denied",
}
"""Events of these types are one incident each, but a policy's that allowed the call; a limit that was passed is one
that is only observed."""


def incident_of(event: e.Event) -> str | None:
    """The kind of incident that the event is, or None."""
    if event.type == "policy.decided" and cast(e.PolicyDecided, event).allowed:
        return None
    return KINDS.get(event.type)
