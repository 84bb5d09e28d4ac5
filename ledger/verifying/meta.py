"""What a ledger says of itself: how its bytes are hashed, and what its tables mean."""

from __future__ import annotations

from collections.abc import Mapping

from ledger.bytes import HASH_VERSION
from ledger.store.identity import FORMAT_VERSION
from ledger.verifying.findings import Finding

WANTED = {"hash_version": str(HASH_VERSION), "format_version": str(FORMAT_VERSION)}


def check_meta(meta: Mapping[str, str]) -> list[Finding]:
    """What of it is not as this program made it, or would have refused it."""
    return [
        Finding("meta_differs", f"{key} of the ledger is {meta.get(key, 'not there')}, and should be {wanted}")
        for key, wanted in WANTED.items()
        if meta.get(key) != wanted
    ]
