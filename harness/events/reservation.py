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


class ReservationRejected(BoundaryEvent):
    """Nothing was charged: `used + amount` would have passed `limit` of `resource`."""

    type: Literal["reservation.rejected"] = "reservation.rejected"
    version: Literal[1] = 1
    kind: Code
    name: Name
    resource: Name
    amount: Count
    used: Count
    limit: Count
    scope_id: Id | None = None
    """The nested scope whose limit it is; left out where it is the run's."""


class LimitWouldReject(BoundaryEvent):
    """The work was let through, since the limit that it passes is only observed (SPEC D13)."""

    type: Literal["limit.would_reject"] = "limit.would_reject"
    version: Literal[1] = 1
    kind: Code
    name: Name
    resource: Name
    amount: Count
    used: Count
    limit: Count
    attempt_id: Id | None = None
    scope_id: Id | None = None
