"""`python -m tests.postgres.write_rules`: what `verify` expects of a database, written anew."""

from __future__ import annotations

from pathlib import Path

import ledger.store.postgres.rules as of_rules
from ledger.store.postgres.migrating import ensure_current
from ledger.store.postgres.place import place_at
from tests.servers.postgres import PostgresServer, in_thread


async def rules_at(url: str) -> list[tuple[str, str]]:
    """Every rule that the server has, as it writes it."""
    connection = await place_at(url).connect()
    try:
        return [tuple(row) for row in await connection.fetch(of_rules.READ_RULES)]
    finally:
        await connection.close()


async def restored_at(url: str) -> list[tuple[str, str]]:
    """The same, once its triggers were made anew of what it wrote, as when a dump is restored."""
    connection = await place_at(url).connect()
    try:
        for rule, how in await connection.fetch(of_rules.READ_RULES):
            if rule.startswith("trigger "):
                table, _, name = rule.removeprefix("trigger ").partition(".")
                await connection.execute(f"DROP TRIGGER {name} ON {table}")
                await connection.execute(how)
                await connection.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}")
    finally:
        await connection.close()
    return await rules_at(url)


def write() -> None:
    """Make a ledger of nothing, and keep what its rules are."""
    server = PostgresServer(is_durable=False).start()
    try:
        url = server.url(server.create_database())
        in_thread(lambda: ensure_current(place_at(url)))
        made = in_thread(lambda: rules_at(url))
        others = [row for row in in_thread(lambda: restored_at(url)) if row not in made]
        lines = [f"{rule}\t{how}\n" for rule, how in sorted([*made, *others], key=lambda row: row[0])]
        Path(of_rules.__file__).with_name("rules.txt").write_text("".join(lines), "utf-8")
    finally:
        server.stop()


if __name__ == "__main__":
    write()
