"""What a run's events tell that a plain course does not have, counted by kind."""

from __future__ import annotations

from harness import events as e

_KINDS: dict[type[e.Event], str] = {
    e.HiddenRetryDetected: "hidden_retries",
    e.ScopeExhausted: "scopes_exhausted",
    e.LimitWouldReject: "limits_passed",
}
"""Each event of these types is one incident; a limit that was passed is one that is only observed."""


def incident_of(event: e.Event) -> str | None:
    """The kind of incident that the event is, or None."""
    if isinstance(event, e.PolicyDecided):
        return None if event.allowed else "calls_denied"
    return _KINDS.get(type(event))
