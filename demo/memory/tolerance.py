"""A run does not need its conversation: where that cannot be had, the run goes on without, and says so."""

import logging

from demo.memory.turns import Memory, MemoryUnavailable, Turn

log = logging.getLogger(__name__)


async def recalled(memory: Memory, session_id: str) -> tuple[Turn, ...] | None:
    """The latest turns, oldest first; None where they cannot be read now."""
    try:
        return await memory.recall(session_id)
    except MemoryUnavailable as error:
        log.warning("session %s goes on without its conversation: %s", session_id, error.message)
        return None


async def kept(memory: Memory, session_id: str, turn: Turn) -> bool:
    """Add a turn; False where that is not known to have been done."""
    try:
        await memory.remember(session_id, turn)
    except MemoryUnavailable as error:
        log.warning("session %s will not remember its latest turn: %s", session_id, error.message)
        return False
    return True
