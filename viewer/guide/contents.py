"""Contents of every kind and state, as blocks."""

import hashlib

from ledger.records import ContentView, Erasure
from viewer.guide.lists import AT_US
from viewer.present.content import Block, block

_JSON = (
    b'{"mount": "/var", "used_percent": 100, "checked": true, "note": null, "hosts": ["db-3", "db-4"], "of": {"n": 2}}'
)
_TABLE = b'[{"line": 48211, "text": "write failed", "ok": false}, {"line": 48212, "text": "rolling back", "ok": true}]'
_DIFF = b"--- a/limits.toml\n+++ b/limits.toml\n@@ -1,3 +1,3 @@\n tools = 20\n-query_logs = 5\n+query_logs = 8\n"
_HOSTILE = "<script>alert(1)</script> \x1b[31mred\x1b[0m invoice \u202efdp.exe".encode()


def blocks() -> list[tuple[str, Block]]:
    """Each with what it is an example of."""
    erasure = Erasure(AT_US, "REQUESTED", "privacy-office", "erasure-1")
    given = [
        ("JSON as a tree", _content(_JSON, "application/json")),
        ("JSON as a table", _content(_TABLE, "application/json")),
        ("A difference", _content(_DIFF, "text/x-diff")),
        ("Text", _content(b"The disk of db-3 was full.\n\nNothing was lost.")),
        ("Text that would like to be more", _content(_HOSTILE)),
        ("A window of something huge", _content(b"one line of very many\n" * 240_000)),
        ("Empty", _content(b"")),
        ("Only a digest", _content(_JSON, "application/json", state="digest_only")),
        ("Erased", _content(_JSON, "application/json", state="erased", erasure=erasure)),
        ("Damaged", _content(_JSON, "application/json", state="damaged")),
    ]
    found = [(name, block(f"guide-{number}", content)) for number, (name, content) in enumerate(given, 1)]
    return [(name, each) for name, each in found if each is not None]


def _content(
    data: bytes, media_type: str = "text/plain", *, state: str = "stored", erasure: Erasure | None = None
) -> ContentView:
    return ContentView(
        digest=hashlib.sha256(data).hexdigest(),
        size_bytes=len(data),
        media_type=media_type,
        state=state,  # type: ignore[arg-type]
        data=data if state == "stored" else None,
        erasure=erasure,
    )
