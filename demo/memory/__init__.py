"""What a conversation remembers: the last few questions and answers of a session, for a day, in a file or in Redis.

The ledger holds what runs did; the history of a conversation is never there (SPEC R1), only here.
"""

from demo.memory.tolerance import kept, recalled
from demo.memory.turns import Memory, MemoryUnavailable, MemoryUnusable, Turn, cut

__all__ = ["Memory", "MemoryUnavailable", "MemoryUnusable", "Turn", "cut", "kept", "recalled"]
