"""What a conversation is: its last few questions and answers, and somewhere to keep them for a day."""

from dataclasses import dataclass
from typing import Protocol

from demo.bounds import MEMORY_TEXT_CHARS_MAX
from demo.errors import DemoError
from demo.text import beginning


class MemoryUnusable(DemoError):
    """Conversations cannot be kept where the settings say."""

    code = "memory_unusable"


class MemoryUnavailable(DemoError):
    """Conversations cannot be read or written now; what was being done to one may have been done, or not."""

    code = "memory_unavailable"


@dataclass(frozen=True, slots=True)
class Turn:
    """One question with its answer; both are cut at a bound."""

    question: str
    answer: str


class Memory(Protocol):
    """Where conversations are kept; each call ends in `MEMORY_TIMEOUT_S`, with `MemoryUnavailable` if need be."""

    async def recall(self, session_id: str) -> tuple[Turn, ...]:
        """The latest turns, oldest first; none once the conversation has expired."""

    async def remember(self, session_id: str, turn: Turn) -> None:
        """Add a turn; the oldest beyond the bound is forgotten."""

    async def forget(self, session_id: str) -> None:
        """Forget the whole conversation."""


def cut(text: str) -> str:
    """A text as a turn keeps it."""
    return beginning(text.encode("utf-8", "replace").decode("utf-8"), MEMORY_TEXT_CHARS_MAX)
