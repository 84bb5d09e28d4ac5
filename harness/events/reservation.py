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
    attempt_id: Id | None = None


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
