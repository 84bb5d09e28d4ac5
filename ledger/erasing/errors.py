"""Why an erasure is not carried out on the word of one person."""

from __future__ import annotations

from collections.abc import Sequence

from ledger.errors import LedgerError


class ErasureRefused(LedgerError):
    """Base of what the rule of two persons refuses; nothing was erased."""

    code = "erasure_refused"


class SecondPersonNeeded(ErasureRefused):
    """Two persons have the right to erase, so one asks and another one of them confirms."""

    code = "second_person_needed"

    def __init__(self, asked_by: str | None, confirmed_by: str | None, persons: Sequence[str]) -> None:
        self.asked_by = asked_by
        self.confirmed_by = confirmed_by
        self.persons = tuple(persons)
        by = f" and {confirmed_by} to confirm" if confirmed_by is not None else ""
        super().__init__(f"{asked_by or 'nobody'} is to ask{by}: another one of those who may erase has to confirm it")


class ErasureRequestNotFound(ErasureRefused, LookupError):
    """Nobody asked for that."""

    code = "erasure_request_not_found"

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id
        super().__init__(f"there is no request {request_id} to erase anything")


class ErasureAlreadyConfirmed(ErasureRefused):
    """It was confirmed before, and is confirmed once."""

    code = "erasure_already_confirmed"

    def __init__(self, request_id: str, asked_by: str, confirmed_by: str | None) -> None:
        self.request_id = request_id
        self.asked_by = asked_by
        self.confirmed_by = confirmed_by
        super().__init__(f"request {request_id} was confirmed by {confirmed_by}")


class ErasureRequestExpired(ErasureRefused):
    """Nobody confirmed it in time; it can be asked for again."""

    code = "erasure_request_expired"

    def __init__(self, request_id: str, expires_us: int) -> None:
        self.request_id = request_id
        self.expires_us = expires_us
        super().__init__(f"request {request_id} was not confirmed in time: ask again")
