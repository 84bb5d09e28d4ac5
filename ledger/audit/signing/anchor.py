"""An anchor is a file, best out of reach of whoever can write the database, to which each checkpoint is appended.

Notes stand in it one after another with an empty line between them. A write that was cut off is passed over by
readers, and what is appended later stands apart from it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path

from ledger.audit.errors import AnchorError, InvalidCheckpoint, InvalidNote
from ledger.audit.notes.checkpoint import Checkpoint, SignedCheckpoint
from ledger.audit.notes.notes import DASH, ID_BYTES, MAX_NOTE_BYTES, split_note
from ledger.store.place import sync

TAILS_BYTES = (4_096, 65_536)
"""In which the last checkpoint of an origin is looked for: some 15 notes; some 250 where other logs share the file."""
PIECE_BYTES = 1 << 20
SIGNATURE_BYTES = 64
"""No signature is shorter, but one that was cut off."""

LOCK_POLLS = 500
LOCK_POLL_S = 0.02
ANCHOR_MODE = 0o644
_TO_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
_GAP = re.compile(r"\n{2,}")


class Anchor:
    """The file at `path`, which is made by the first checkpoint."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, signed: SignedCheckpoint) -> None:
        """Add the checkpoint durably; `AnchorError` if that cannot be done. Any number of processes may."""
        try:
            is_new = not self.path.exists() or self.path.stat().st_size == 0
            gap = "" if is_new or self._ends_well() else "\n\n"
            data = f"{gap}{signed.note}\n".encode()
            descriptor = os.open(self.path, _TO_APPEND, ANCHOR_MODE)
            try:
                # One write, so that nothing of others comes in between.
                if os.write(descriptor, data) != len(data):
                    raise OSError(0, "no room")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if is_new:
                sync(self.path.parent)
        except OSError as error:
            raise AnchorError(self.path, f"cannot be added to ({error.strerror})") from error

    @contextlib.asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Let no other who asks for it append meanwhile, where the file can be locked; `AnchorError` after a while."""
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError):  # What keeps it from being added to is said by whoever appends.
                descriptor = os.open(self.path, _TO_APPEND, ANCHOR_MODE)
                stack.callback(os.close, descriptor)
                await self._lock(descriptor)
            yield

    async def _lock(self, descriptor: int) -> None:
        for _ in range(LOCK_POLLS):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                await asyncio.sleep(LOCK_POLL_S)
            else:
                return
        raise AnchorError(self.path, "cannot be added to (others have kept it locked)")

    def latest(self, origin: str, *, of_all: bool = False) -> Checkpoint | None:
        """The largest of the last checkpoints of that log, whoever signed it; None where there is no file.

        With `of_all` the whole file is read where its end has none.
        """
        for tail_bytes in TAILS_BYTES:
            found = _largest(notes_in(self._tail(tail_bytes)), origin)
            if found is not None:
                return found
        return _largest(self.notes(), origin) if of_all and self.path.exists() else None

    def notes(self) -> Iterator[SignedCheckpoint]:
        """Every whole note, in the order of the file, whoever signed it; a file of any size is read in pieces."""
        rest = ""
        try:
            with self.path.open("r", encoding="utf-8", errors="replace", newline="\n") as file:
                while piece := file.read(PIECE_BYTES):
                    text = rest + piece
                    cut = _last_end(text)
                    yield from notes_in(text[:cut])
                    # What is longer than any note, and has no end, is none.
                    rest = text[cut:][-2 * MAX_NOTE_BYTES :]
        except OSError as error:
            raise AnchorError(self.path, f"cannot be read ({error.strerror})") from error
        yield from notes_in(rest)

    def _tail(self, size_bytes: int) -> str:
        """The last notes, as many as there are in so many bytes; nothing where there is no file."""
        try:
            with self.path.open("rb") as file:
                begin = max(0, file.seek(0, os.SEEK_END) - size_bytes)
                file.seek(begin)
                text = file.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise AnchorError(self.path, f"cannot be read ({error.strerror})") from error
        # What it begins in the middle of would be taken for something else.
        return text if begin == 0 else _GAP.split(text, maxsplit=1)[-1]

    def _ends_well(self) -> bool:
        with self.path.open("rb") as file:
            size_bytes = file.seek(0, os.SEEK_END)
            file.seek(max(0, size_bytes - 2))
            return size_bytes == 0 or file.read() == b"\n\n"


def notes_in(text: str) -> Iterator[SignedCheckpoint]:
    """The whole notes of a text; pieces of others are passed over."""
    blocks = _GAP.split(text)
    before = ""
    for at, block in enumerate(blocks):
        is_signed = block.startswith(DASH)
        # At the very end, a line without its newline may have been cut off.
        is_whole = at < len(blocks) - 1 or block.endswith("\n")
        if is_signed and before and is_whole:
            note = f"{before}\n\n{block.rstrip()}\n"
            if _is_note(note):
                yield SignedCheckpoint(note)
        before = "" if is_signed else block


def _is_note(note: str) -> bool:
    try:
        _, signatures = split_note(note)
    except InvalidNote:
        return False
    return all(len(data) >= ID_BYTES + SIGNATURE_BYTES for _, data in signatures)


def _largest(notes: Iterable[SignedCheckpoint], origin: str) -> Checkpoint | None:
    claims = (checkpoint for signed in notes for checkpoint in _claims(signed))
    return max((one for one in claims if one.origin == origin), key=lambda one: one.size, default=None)


def _claims(signed: SignedCheckpoint) -> Iterator[Checkpoint]:
    try:
        yield signed.claim
    except (InvalidNote, InvalidCheckpoint):
        return


def _last_end(text: str) -> int:
    """Where the last note that is whole ends, its signatures and the gap after them included."""
    end = 0
    for gap in _GAP.finditer(text):
        line = text.rfind("\n", 0, gap.start()) + 1
        if text.startswith(DASH, line):
            end = gap.end()
    return end
