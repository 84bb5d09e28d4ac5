"""What a boundary was granted, or which limit refused it (SPEC H4)."""

from typing import Literal

from harness.events.base import BoundaryEvent, Code, Count, CountMap, Id, Name


class ReservationGranted(BoundaryEvent):
    """`usage` was charged; for an attempt this is one append with its start."""

    type: Literal["reservation.granted"] = "reservation.granted"
    version: Literal[1] = 1
    kind: Code
    name: Name
    usage: CountMap
    """Calls and bytes, and tokens and cost where an estimate of them was reserved."""
    attempt_id: Id | None = None
    scope_id: Id | None = None
    """The innermost nested scope that is charged, with all scopes around it and the run (SPEC D5)."""


class LimitEvent(BoundaryEvent):
    """Any event of a limit: `used + amount` would pass `limit` of `resource`."""

    kind: Code
    name: Name
    resource: Name
    amount: Count
    used: Count
    limit: Count
    scope_id: Id | None = None
    """The nested scope whose limit it is; left out where it is the run's."""


class ReservationRejected(LimitEvent):
    """Nothing was charged; the run, or the scope whose limit it is, has ended."""

    type: Literal["reservation.rejected"] = "reservation.rejected"
    version: Literal[1] = 1


class LimitWouldReject(LimitEvent):
    """The work was let through, since the limit is only observed (SPEC D13)."""

    type: Literal["limit.would_reject"] = "limit.would_reject"
    version: Literal[1] = 1
    attempt_id: Id | None = None
