"""A program runs as a role that owns nothing: it can do its work, and cannot take away what guards the log (E2)."""

import pytest

from harness import Harness, Limits
from ledger import Ledger, LedgerUnreadable
from ledger.store.postgres.place import place_at
from ledger.store.postgres.roles import ADD_ONLY, MOVE, READ, REPLACE, grant_writer
from tests.contract.databases import PostgresOutsider, Refused
from tests.contract.test_following import ordered
from tests.contract.test_lag import deliver_all
from tests.ledger.scripted import ScriptedRun

LIMITS = Limits(
    model_calls=1, tool_calls=9, per_tool_default=9, input_tokens=1, output_tokens=1, total_tokens=1, run_bytes=9_999
)


@pytest.fixture
async def writer_url(database, plain, postgres_server):
    role = "a writer"
    plain().script(f'DROP ROLE IF EXISTS "{role}"; CREATE ROLE "{role}" LOGIN')
    await grant_writer(place_at(database.url), role)
    yield database.url.replace("postgres@", "a%20writer@")
    plain().script(f'DROP OWNED BY "{role}"; DROP ROLE "{role}"')


async def test_a_writer_can_do_all_that_a_program_does(writer_url, caplog):
    async def look(run, pattern):
        return pattern

    async with await Ledger.open(writer_url, lease_s=0.5) as ledger:
        harness = Harness(ledger.journal)
        async with harness.run(session_id="session-1", run_id="run-1", limits=LIMITS, timeout_s=30) as run:
            await harness.tool(run, "look", look, args={"pattern": "x"})
        await ledger.record_feedback("session-1", "run-1", useful=True)
        ledger.journal.submit(ScriptedRun("run-2").start()).result()
        assert (await ledger.rebuild()).is_clean
    async with await Ledger.open(writer_url, lease_s=0.5) as ledger:
        runs = (await ledger.reader.recent_runs()).rows
        assert {run.run_id: run.status for run in runs} == {"run-1": "SUCCESS", "run-2": "FAILED"}
    assert not [line for line in caplog.messages if "the right" in line or "permission" in line]


async def test_a_writer_gives_events_their_place_and_has_followers(writer_url):  # E8
    async with await Ledger.open(writer_url) as ledger:
        ledger.journal.submit(ScriptedRun().start()).result()
        await ordered(ledger, 2)
        await deliver_all(ledger, "export", 1)
        assert (await ledger.reader.vitals()).follower_lags == {"export": 0}
        assert await ledger.followers.forget("export")


ATTACKS = {
    "update": "UPDATE event SET version = 2",
    "delete": "DELETE FROM event",
    "truncate": "TRUNCATE event",
    "no trigger": "ALTER TABLE event DISABLE TRIGGER event_immutable",
    "no triggers at all": "ALTER TABLE event DISABLE TRIGGER ALL",
    "a trigger less": "DROP TRIGGER event_immutable ON event",
    "another function in its place": "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql"
    " AS 'BEGIN RETURN NULL; END'",
    "a replica's session": "SET session_replication_role = replica",
    "a table less": "DROP TABLE event",
    "another name": "ALTER TABLE event RENAME TO old",
    "a column less": "ALTER TABLE event DROP COLUMN link",
    "a table that inherits": "CREATE TEMP TABLE more () INHERITS (event)",
    "a rule": "CREATE RULE nothing AS ON INSERT TO event DO INSTEAD NOTHING",
    "a trigger of its own": "CREATE TRIGGER mine BEFORE INSERT ON event EXECUTE FUNCTION refuse()",
    "another owner": "ALTER TABLE event OWNER TO CURRENT_USER",
    "more rights": "GRANT ALL ON event TO CURRENT_USER; DELETE FROM event",
    "another identity": "UPDATE ledger_meta SET value = 'x'",
    "another schema version": "UPDATE alembic_version SET version_num = '0099'",
    "whose stream it is": "UPDATE stream SET session_id = 'x'",
    "no stream": "DELETE FROM stream",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
async def test_a_writer_cannot_take_away_what_guards_the_log(writer_url, attack):  # E2
    async with await Ledger.open(writer_url, lease_s=0.5) as ledger:
        ledger.journal.submit(ScriptedRun().start()).result()
    outsider = PostgresOutsider(writer_url)
    before = outsider.execute("SELECT * FROM event ORDER BY pos").rows
    try:
        with pytest.raises(Refused, match=r"permission denied|must be owner"):
            outsider.script(attack)
        assert outsider.execute("SELECT * FROM event ORDER BY pos").rows == before
    finally:
        outsider.close()


def test_of_every_table_it_is_said_what_a_writer_may_do_with_it(plain):
    tables = "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
    rows = plain().execute(tables)
    assert {row[0] for row in rows} == {*READ, *ADD_ONLY, *MOVE, *REPLACE}


async def test_without_the_rights_nothing_is_opened(database, plain, postgres_server):
    plain().script("DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN")
    with pytest.raises(LedgerUnreadable, match="has not the right"):
        await Ledger.open(database.url.replace("postgres@", "stranger@"))
    plain().script("DROP ROLE stranger")
