"""How the viewer reads a ledger, and one run of it without reading a big one whole."""

from viewer.reading.reader import Follower, Reader

__all__ = ["Follower", "Reader"]
