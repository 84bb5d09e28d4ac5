"""How much a bundle may hold: what is more is refused, by whoever makes a bundle and by whoever is given one.

A bundle may come from an enemy. Whatever it claims, reading it takes memory for a chunk, a line, or what is counted
here, and time for `MAX_UNPACKED_BYTES` at most.
"""

MAX_FILE_BYTES = (1 << 32) - 2
"""Of the file, and of each member: the form for larger zip files is not used."""
MAX_MEMBERS = 65_534
MAX_UNPACKED_BYTES = 8 * 1024**3
"""Of all members together."""
MAX_RATIO = 200
"""How many times its packed size a member may have, beyond"""
RATIO_FREE_BYTES = 1024**2
"""this much, which may be packed as tightly as it will."""

CHUNK_BYTES = 256 * 1024
"""Read and unpacked at once."""
MAX_NAME_BYTES = 80

MAX_MANIFEST_BYTES = 65_536
MAX_TEXT_BYTES = 1024**2
"""Of a checkpoint, a proof, or the keys."""
MAX_EVENT_LINE_BYTES = 20_480
"""An event's body has 16 KiB at most."""
MAX_ROW_LINE_BYTES = 1024**2
MAX_INDEX_LINE_BYTES = 2_048
"""Of a content's entry, or a stream's head."""

MAX_RUN_EVENTS = 1_000_000
MAX_PERIOD_EVENTS = 10_000_000
MAX_STREAMS = 1_000_000
"""Streams that have events in a period."""
