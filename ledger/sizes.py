"""How big anything may be that a ledger stores: what is bigger is refused, with its size and the limit (SPEC D10).

Nothing is ever cut. How much waits or is done at once is another matter: `WriterLimits` and `ErasureLimits`.
"""

from harness.content import MAX_CONTENT_BYTES

__all__ = ["MAX_BODY_BYTES", "MAX_CONTENT_BYTES", "MAX_TEXT_BYTES"]

MAX_BODY_BYTES = 16_384
"""Of an event."""
MAX_TEXT_BYTES = 65_536
"""Of a comment or a rationale."""
