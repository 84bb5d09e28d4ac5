"""What holds the rules of a ledger in its database is there, and as migrations made it (SPEC E2, E9)."""

from __future__ import annotations

import pytest

from ledger import Ledger
from ledger.store.postgres.rules import rules_made
from ledger.verifying import verify
from tests.contract.databases import PostgresOutsider
from tests.contract.test_following import all_ordered
from tests.ledger.scripted import ScriptedRun
from tests.postgres.write_rules import rules_at

AWAY = {
    "sqlite": {
        "a trigger that was dropped": "DROP TRIGGER event_update",
        "one that was dropped and made anew without what it did": (
            "DROP TRIGGER event_delete;\nCREATE TRIGGER event_delete BEFORE DELETE ON event BEGIN SELECT 1; END"
        ),
        "one that was written out of the schema": (
            "PRAGMA writable_schema = ON;\nDELETE FROM sqlite_schema WHERE name = 'event_update'"
        ),
        "one that was written over": (
            "PRAGMA writable_schema = ON;\nUPDATE sqlite_schema"
            " SET sql = replace(sql, 'UPDATE ON event', 'UPDATE ON event WHEN 0') WHERE name = 'event_update'"
        ),
        "an index that keeps a run from ending twice": "DROP INDEX event_termination",
        "a trigger of somebody's own": (
            "CREATE TRIGGER mine AFTER INSERT ON event BEGIN DELETE FROM diagnosis_run; END"
        ),
    },
    "postgresql": {
        "a trigger that was dropped": "DROP TRIGGER event_immutable ON event",
        "one that is off": "ALTER TABLE event DISABLE TRIGGER event_immutable",
        "one that is not always on": "ALTER TABLE event ENABLE TRIGGER event_immutable",
        "a function that does nothing": (
            "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$"
        ),
        "foreign keys that are off": "ALTER TABLE content DISABLE TRIGGER ALL",
        "an index that keeps a run from ending twice": "DROP INDEX event_termination",
        "a trigger of somebody's own": (
            "CREATE TRIGGER mine AFTER INSERT ON event FOR EACH ROW EXECUTE FUNCTION refuse('no')"
        ),
    },
}


@pytest.mark.parametrize("how", sorted({*AWAY["sqlite"], *AWAY["postgresql"]}))
async def test_rules_that_are_gone_changed_or_added_are_named(ledger, database, plain, how):  # E2
    for submission in ScriptedRun().whole():
        ledger.journal.submit(submission).result()
    assert (await verify(database.url)).findings == ()
    outsider = plain()
    for statement in AWAY[outsider.dialect].get(how, "SELECT 1").split(";\n"):
        outsider.execute(statement)
    found = {finding.problem for finding in (await verify(database.url)).findings}
    assert found == ({"rules_missing"} if how in AWAY[outsider.dialect] else set())


async def test_what_a_server_says_of_a_new_ledger_is_what_is_expected_of_it(postgres_url):
    # After a migration, `python -m tests.postgres.write_rules` writes anew what is expected.
    assert dict(await rules_at(postgres_url)) == rules_made()


ORDER = {
    "a place that is gone": "DELETE FROM leaf WHERE leaf_index = 3",
    "a place of no event": "UPDATE leaf SET seq = 99 WHERE leaf_index = (SELECT max(leaf_index) FROM leaf)",
    "places in another order": (
        "UPDATE leaf SET leaf_index = -1 WHERE leaf_index = 4; UPDATE leaf SET leaf_index = 4 WHERE leaf_index = 5;"
        " UPDATE leaf SET leaf_index = 5 WHERE leaf_index = -1"
    ),
    "an event that was passed over": (
        "DELETE FROM leaf WHERE leaf_index = (SELECT max(leaf_index) FROM leaf); UPDATE tree_head SET size = size - 1"
    ),
}


@pytest.mark.parametrize("how", ORDER)
async def test_a_public_order_that_is_none_is_found(postgres_url, how):  # E8
    outsider = PostgresOutsider(postgres_url)
    async with await Ledger.open(postgres_url) as ledger:
        for submission in ScriptedRun().whole():
            ledger.journal.submit(submission).result()
        await all_ordered(ledger)
    assert (await verify(postgres_url)).findings == ()
    for table in ("leaf", "tree_head"):
        outsider.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
    for statement in ORDER[how].split("; "):
        outsider.execute(statement)
    outsider.close()
    assert "order_differs" in {finding.problem for finding in (await verify(postgres_url)).findings}
