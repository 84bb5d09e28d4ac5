"""`tachograph system`: what was decided about the ledger itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ledger.cli.common import command, db_option, json_option, print_json, table
from ledger.reading.reader import LedgerReader
from ledger.words.format import instant

ENVELOPE = frozenset({"event_id", "type", "version", "stream_id", "occurred_us"})


@click.command()
@db_option
@click.option("--after", "after_seq", default=0, show_default=True, help="Only events after this position.")
@click.option("--limit", default=200, show_default=True, help="How many.")
@json_option
@command
async def system(db: str, after_seq: int, limit: int, as_json: bool) -> None:
    """List keys, tokens, access, erasures and retention, in the order in which they were decided."""
    async with await LedgerReader.open(db) as reader:
        events = await reader.system_events(after_seq, limit)
    if as_json:
        print_json([{"seq": event.seq, "link": event.link, **event.fields} for event in events])
        return
    rows = [[str(event.seq), instant(event.occurred_us), event.type, _facts(event.fields)] for event in events]
    click.echo(table([["SEQ", "TIME", "EVENT", "FACTS"], *rows]) if rows else "nothing was decided")
    if len(events) == limit:
        click.echo(f"more: --after {events[-1].seq}")


def _facts(fields: Mapping[str, Any]) -> str:
    facts = ((name, value) for name, value in fields.items() if name not in ENVELOPE)
    return ", ".join(f"{name} {instant(value) if name.endswith('_us') else value}" for name, value in facts)
