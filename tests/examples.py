"""How many examples property tests try: enough for every push, and as many times more as `make soak` asks for."""

import os

from hypothesis import settings

SOAK = int(os.environ.get("TACHOGRAPH_SOAK", "1"))
"""How many times as many there shall be."""


def examples(count: int) -> settings:
    """So many of them, times what is asked for."""
    return settings(max_examples=count * SOAK, deadline=None)
