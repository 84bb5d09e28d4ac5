"""The events of one run in a bundle: contiguous, each linked to the one before, in the log, and what they add up to."""

from __future__ import annotations

from typing import Any

from ledger.append.folding import PAGE_EVENTS
from ledger.audit.bundle import limits
from ledger.audit.bundle.contents import NamedContents
from ledger.audit.bundle.errors import BundleWrong
from ledger.audit.bundle.event_lines import fields_in, parse_event_line
from ledger.audit.bundle.manifest import EVENTS, RunManifest
from ledger.audit.bundle.reading import Archive
from ledger.audit.bundle.rows import FoldedRows
from ledger.audit.bundle.tree_check import TreeCheck
from ledger.bytes import genesis_link


def check_run_events(
    archive: Archive, manifest: RunManifest, tree: TreeCheck | None, rows: FoldedRows | None
) -> NamedContents:
    """What the events say of contents; `BundleWrong` for the first event that is not as it should be."""
    link = genesis_link(manifest.ledger_id, manifest.stream_id)
    named = NamedContents()
    page: list[bytes] = []
    number = 0
    for line in archive.lines(EVENTS, limits.MAX_EVENT_LINE_BYTES, manifest.digest_of(EVENTS)):
        number += 1
        event = parse_event_line(line, number)
        if event.seq != number:
            raise BundleWrong("sequence_gap", f"event {number}", f"its number is said to be {event.seq}")
        event.require_linked(link, number)
        link = event.link
        if tree is not None:
            tree.add(event.leaf_index, link)
        named.add(number, _fields_of(event.body, number, manifest))
        page.append(event.body)
        if rows is not None and len(page) == PAGE_EVENTS:
            rows.add_page(page)
            page = []
    if number != manifest.event_count:
        raise BundleWrong("count_differs", EVENTS, f"there are {number} events, and the manifest says otherwise")
    if rows is not None and page:
        rows.add_page(page)
    if tree is not None:
        tree.end()
    return named


def _fields_of(body: bytes, number: int, manifest: RunManifest) -> dict[str, Any]:
    try:
        fields = fields_in(body, f"event {number}")
        found = fields["stream_id"], fields["session_id"], fields["run_id"]
    except KeyError:
        raise BundleWrong("event_unreadable", f"event {number}", "its body is not that of a run's event") from None
    if found != (manifest.stream_id, manifest.session_id, manifest.run_id):
        raise BundleWrong("stream_identity", f"event {number}", "it is of another run or session")
    return fields
