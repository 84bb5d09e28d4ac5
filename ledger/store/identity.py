"""What a ledger says of itself, whatever it is stored in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ledger.errors import LedgerNotLive, LedgerTooNew, NotALedger, Place

FORMAT_VERSION = 1
"""What the stored bytes and tables mean; a program refuses a ledger whose version is above its own."""
REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010", "0011")
"""The migrations this program knows, in order."""
HEAD_REVISION = REVISIONS[-1]
READ_META = "SELECT key, value FROM ledger_meta"
READ_REVISION = "SELECT version_num FROM alembic_version"
LIVE = "live"
RESTORED = "restored"
"""Of a database that a dump was restored into, until somebody has said that it is to go on."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a ledger says of itself."""

    ledger_id: str
    revision: str
    standing: str = LIVE
    """`backup`, `moved` or `restored`, of what nobody may write: there is, or may be, another that goes on."""


def require_live(place: Place, identity: Identity) -> None:
    """`LedgerNotLive` unless the ledger may be written: of two copies only one goes on."""
    if identity.standing != LIVE:
        raise LedgerNotLive(place, identity.standing)


def checked(place: Place, meta: Mapping[str, str], revisions: Sequence[str]) -> Identity:
    """The identity; `NotALedger` or `LedgerTooNew` if it is none that this program can use."""
    version = meta.get("format_version", "")
    if "ledger_id" not in meta or not version.isdecimal() or len(revisions) != 1:
        raise NotALedger(place, "is a database, but no ledger")
    if int(version) > FORMAT_VERSION:
        raise LedgerTooNew(place, f"format {version}")
    if revisions[0] not in REVISIONS:
        raise LedgerTooNew(place, f"schema {revisions[0]}")
    return Identity(meta["ledger_id"], revisions[0], meta.get("standing", LIVE))
