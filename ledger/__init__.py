"""Records every boundary that a run crosses, durably and once, and shows each run exactly as it happened.

What needs a database is imported when it is first asked for: whoever only checks a bundle has no use for it.
"""

import importlib
from typing import TYPE_CHECKING

from ledger.append.front import WriterLimits
from ledger.errors import (
    AheadOfLog,
    AppendConflict,
    ConstraintViolated,
    ContentNotFound,
    EventIdReused,
    InvalidCursor,
    LedgerError,
    LedgerFileError,
    LedgerMissing,
    LedgerNotLive,
    LedgerNotMigrated,
    LedgerTooNew,
    LedgerUnreadable,
    MisplacedEvent,
    NetworkFileSystem,
    NotALedger,
    OwnedElsewhere,
    RunIdTaken,
    RunNotFound,
    RunUnreadable,
    SessionNotFound,
    SessionUnreadable,
    TooLarge,
    UnsupportedUrl,
)
from ledger.records import (
    AgentStep,
    ChatSession,
    ContentView,
    Erasure,
    Page,
    RecordedEvent,
    RunDetail,
    RunSummary,
    RunTrace,
    ToolInvocation,
    UsefulCase,
)

if TYPE_CHECKING:
    from ledger.audit.signing.receipts import Receipt
    from ledger.audit.signing.signing import Signing
    from ledger.erasing.erasing import ErasureLimits, ErasureReport
    from ledger.following.following import Follower
    from ledger.ledger import Ledger
    from ledger.reading.reader import LedgerReader
    from ledger.rebuild import RebuildReport
    from ledger.recovery import Recovery
else:
    _LATE = {
        "ErasureLimits": "ledger.erasing.erasing",
        "ErasureReport": "ledger.erasing.erasing",
        "Follower": "ledger.following.following",
        "Ledger": "ledger.ledger",
        "LedgerReader": "ledger.reading.reader",
        "RebuildReport": "ledger.rebuild",
        "Receipt": "ledger.audit.signing.receipts",
        "Recovery": "ledger.recovery",
        "Signing": "ledger.audit.signing.signing",
    }

    def __getattr__(name: str) -> object:
        if name not in _LATE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(_LATE[name]), name)


__all__ = [
    "AgentStep",
    "AheadOfLog",
    "AppendConflict",
    "ChatSession",
    "ConstraintViolated",
    "ContentNotFound",
    "ContentView",
    "Erasure",
    "ErasureLimits",
    "ErasureReport",
    "EventIdReused",
    "Follower",
    "InvalidCursor",
    "Ledger",
    "LedgerError",
    "LedgerFileError",
    "LedgerMissing",
    "LedgerNotLive",
    "LedgerNotMigrated",
    "LedgerReader",
    "LedgerTooNew",
    "LedgerUnreadable",
    "MisplacedEvent",
    "NetworkFileSystem",
    "NotALedger",
    "OwnedElsewhere",
    "Page",
    "RebuildReport",
    "Receipt",
    "RecordedEvent",
    "Recovery",
    "RunDetail",
    "RunIdTaken",
    "RunNotFound",
    "RunSummary",
    "RunTrace",
    "RunUnreadable",
    "SessionNotFound",
    "SessionUnreadable",
    "Signing",
    "TooLarge",
    "ToolInvocation",
    "UnsupportedUrl",
    "UsefulCase",
    "WriterLimits",
]
