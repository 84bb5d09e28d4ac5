"""What a boundary keeps of the content that passed it, within the run's bytes (SPEC H9, D10)."""

from __future__ import annotations

from typing import Any

from harness.budget.usage import Excess
from harness.content import Content, SealedContent, encode_content
from harness.live.accounts import Accounts
from harness.live.run import LiveRun
from harness.redaction import Captured


def keep_content(
    accounts: Accounts, role: str, captured: Captured
) -> tuple[dict[str, Any], tuple[SealedContent, ...], Excess | None]:
    """Event fields, contents to submit, and the byte limit that did not let the content be kept; lock held."""
    size_bytes = len(captured.content.data)
    overflow = accounts.find_excess({"run_bytes": size_bytes}) if captured.is_kept and size_bytes else None
    if overflow is not None:
        captured = captured._replace(is_kept=False)
    return *seal_content(accounts.live, role, captured), overflow


def seal_content(live: LiveRun, role: str, captured: Captured) -> tuple[dict[str, Any], tuple[SealedContent, ...]]:
    """Event fields that name the content, and what of it is new to the run and has to be submitted; lock held."""
    sealed, is_new = live.sealer.seal(captured.content, keep=captured.is_kept)
    return content_fields(role, sealed, captured), (sealed,) if is_new else ()


def content_fields(role: str, sealed: SealedContent, captured: Captured) -> dict[str, Any]:
    """What an event says of a content."""
    fields = {f"{role}_digest": sealed.digest, f"{role}_bytes": sealed.size_bytes, f"{role}_stored": captured.is_kept}
    if captured.redaction is not None:
        fields[f"{role}_redaction"] = captured.redaction
    return fields


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
