"""What a token may be good for."""

from enum import StrEnum


class Right(StrEnum):
    """The words are those of `ledger.tokens.records.RIGHTS`."""

    READ = "read"
    ANNOTATE = "annotate"
    CANCEL = "cancel"
    AUDIT = "audit"
    ERASE = "erase"
