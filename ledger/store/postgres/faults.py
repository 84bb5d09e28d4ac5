"""What PostgreSQL and its driver raise, as errors of ours: the one place where the two are matched."""

from __future__ import annotations

import asyncpg

from harness.errors import LedgerUnavailable
from ledger.errors import ConstraintViolated, LedgerFileError, LedgerMissing, LedgerUnreadable
from ledger.store.postgres.place import PostgresPlace
from ledger.words.text import first_line

LOST = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
)
"""The connection is gone, or cannot be had: whether the last statement was carried out is not known."""
AGAIN = (asyncpg.TransactionRollbackError,)
"""Others were in the way: nothing was done, and it may be tried again at once."""
FAULTS = (*LOST, asyncpg.PostgresError)
"""Everything that the driver raises."""
PROBLEMS = {
    "53100": "the server's disk is full",
    "53200": "the server's memory ran out",
    "53300": "the server has no connection to spare",
    "25006": "the server takes no writes",
    "42501": "the user has not the right",
    "55P03": "others kept it locked for too long",
    "57014": "it took too long",
    "58030": "the server's disk failed",
}


def unavailable(error: BaseException) -> LedgerUnavailable:
    """Why nothing could be written, in plain words."""
    state = getattr(error, "sqlstate", None) or ""
    if isinstance(error, TimeoutError):
        return LedgerUnavailable("the server did not answer")
    if isinstance(error, LOST) and state not in PROBLEMS:
        return LedgerUnavailable(f"the server cannot be reached ({_said(error)})")
    return LedgerUnavailable(f"{PROBLEMS.get(state, 'the database failed')} ({_said(error)})")


def violated(error: asyncpg.PostgresError, event_type: str) -> ConstraintViolated:
    """Which rule the database found broken; triggers say `rule: detail`."""
    text = _said(error)
    rule, colon, detail = text.partition(": ")
    if not colon or " " in rule:
        return ConstraintViolated(event_type, getattr(error, "constraint_name", None) or "constraint", text)
    return ConstraintViolated(event_type, rule, detail)


def unusable(place: PostgresPlace, error: BaseException) -> LedgerFileError:
    """Why the ledger cannot be opened or read."""
    if isinstance(error, asyncpg.InvalidCatalogNameError):
        return LedgerMissing(place)
    return LedgerUnreadable(place, f"cannot be used: {unavailable(error).problem}")


def _said(error: BaseException) -> str:
    return first_line(error) or type(error).__name__
