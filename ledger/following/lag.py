"""How far the public order is behind what was committed, and named followers behind the public order (SPEC E8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from ledger.following.leaves import LeafQueries, Wanted, count_after, last_leaf
from ledger.schema import follower

PLACES = sa.select(follower.c.name, follower.c.leaf_index, follower.c.session_id, follower.c.run_id).order_by(
    follower.c.name
)


@dataclass(frozen=True, slots=True)
class Unsequenced:
    """Events that were committed, and have no place in the public order yet."""

    count: int
    oldest_us: int | None
    """When the first of them was recorded."""

    def age_s(self, now_us: int) -> float:
        """For how long the first of them has waited."""
        return 0.0 if self.oldest_us is None else max(0, now_us - self.oldest_us) / 1e6


@dataclass(frozen=True, slots=True)
class Lag:
    """Of one moment."""

    last_leaf: int
    unsequenced: Unsequenced | None
    """None where every event has its place at once."""
    followers: Mapping[str, int]
    """By name, the events that it wants after the last one that it has done with.

    Below zero where it has seen more than there is.
    """


def read_lag(connection: sa.Connection, queries: LeafQueries, unsequenced: Unsequenced | None) -> Lag:
    """`unsequenced` as it is in the same transaction."""
    lags = {
        name: count_after(connection, queries, Wanted(*wanted), place)
        for name, place, *wanted in connection.execute(PLACES).all()
    }
    return Lag(last_leaf(connection, queries), unsequenced, lags)
