"""What a boundary keeps of the content that passed it, within the run's bytes (SPEC H9, D10)."""

from __future__ import annotations

from typing import Any

from harness.accounts import Accounts
from harness.budget import Excess
from harness.content import Capture, Content, SealedContent, encode_content
from harness.live import LiveRun


def keep_content(
    accounts: Accounts, role: str, content: Content, capture: Capture
) -> tuple[dict[str, Any], tuple[SealedContent, ...], Excess | None]:
    """Event fields, contents to submit, and the byte limit that did not let the content be kept; lock held."""
    size_bytes = len(content.data)
    amounts = {"run_bytes": size_bytes}
    wanted = content.is_kept(capture)
    overflow = accounts.find_excess(amounts) if wanted and size_bytes else None
    is_kept = wanted and overflow is None
    return *seal_content(accounts.live, role, content, is_kept), overflow


def seal_content(
    live: LiveRun, role: str, content: Content, keep: bool
) -> tuple[dict[str, Any], tuple[SealedContent, ...]]:
    """Event fields that name the content, and what of it is new to the run and has to be submitted; lock held."""
    sealed, is_new = live.sealer.seal(content, keep=keep)
    fields = {f"{role}_digest": sealed.digest, f"{role}_bytes": sealed.size_bytes, f"{role}_stored": keep}
    return fields, (sealed,) if is_new else ()


def error_type(error: BaseException) -> str:
    """The exception's class name, as far as an event can hold it."""
    name = "".join(char if " " <= char <= "~" else "?" for char in type(error).__qualname__[:256])
    return name if name.strip() else "Exception"


def error_content(error: BaseException) -> Content:
    """What the exception says, or how it looks if it cannot even say that."""
    try:
        return encode_content(str(error))
    except Exception:  # noqa: BLE001 - the exception is the application's, and so is what its methods raise
        return encode_content(object.__repr__(error))
