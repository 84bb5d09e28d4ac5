"""The schema in a database: made, brought up to date and refused, whoever comes at the same time."""

import asyncio
import re

import asyncpg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from click.testing import CliRunner
from sqlalchemy.ext.asyncio import create_async_engine

from ledger import (
    Ledger,
    LedgerMissing,
    LedgerNotMigrated,
    LedgerReader,
    LedgerTooNew,
    LedgerUnreadable,
    NotALedger,
    UnsupportedUrl,
)
from ledger.schema import metadata
from ledger.store.identity import HEAD_REVISION, REVISIONS
from ledger.store.postgres import migrating
from ledger.store.postgres.migrating import ensure_current
from ledger.store.postgres.place import place_at
from tests.contract.databases import PostgresOutsider
from tests.ledger import commands as cli
from tests.ledger.scripted import ScriptedRun

ONLY_THERE = {"owner", "xid", "event_xid", "leaf", "tree_head", "run_text", "run_text_index"}
"""What only a database needs."""


@pytest.mark.filterwarnings("ignore:Did not recognize type .xid8.")
async def test_the_schema_is_that_of_the_tables_in_code(database):
    engine = create_async_engine("postgresql+asyncpg://", async_creator=lambda: asyncpg.connect(database.url))

    def compare(connection):
        options = {"include_object": lambda _, name, kind, *__: name not in ONLY_THERE}
        return compare_metadata(MigrationContext.configure(connection, opts=options), metadata)

    async with engine.connect() as connection:
        assert await connection.run_sync(compare) == []
    await engine.dispose()


async def test_every_id_is_compared_byte_by_byte(plain):
    rows = plain().execute(
        "SELECT table_name, column_name, collation_name FROM information_schema.columns"
        " WHERE table_schema = 'public' AND (column_name ~ '(stream|session|run|event|owner|case|attempt|erasure)_id$'"
        " OR column_name IN ('digest', 'diagnosis_id'))"
    )
    assert len(list(rows)) > 20
    assert {collation for *_, collation in rows} == {"C"}


async def test_every_trigger_fires_in_every_session(plain):  # E2
    rows = plain().execute("SELECT tgname, tgenabled::text FROM pg_trigger WHERE NOT tgisinternal")
    assert len(list(rows)) > 15
    assert {enabled for _, enabled in rows} == {"A"}


async def test_no_column_of_a_projection_has_a_default(plain):  # D18
    rows = plain().execute(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
        " AND (column_default IS NOT NULL OR is_identity = 'YES')"
    )
    assert set(rows) == {("event", "pos"), ("event", "xid")}


@pytest.mark.parametrize("start", [None, *REVISIONS[:-1]])
async def test_of_four_that_upgrade_at_once_one_does_and_all_succeed(empty_url, start):
    place = place_at(empty_url)
    if start is not None:
        await ensure_current(place, revision=start)
    outcomes = await asyncio.gather(*(ensure_current(place) for _ in range(4)))
    assert sorted(str(before) for before, _ in outcomes) == sorted([str(start), *[HEAD_REVISION] * 3])
    assert len({identity for _, identity in outcomes}) == 1


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_migration_that_is_killed_half_way_leaves_nothing_behind(empty_url, plain_at, monkeypatch, moment):
    place, outsider = place_at(empty_url), plain_at(empty_url)
    upgrade = migrating.upgrade

    def killed(connection, *args, **facts):
        if moment == "after":
            upgrade(connection, *args, **facts)
        outsider.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        upgrade(connection, *args, **facts)

    monkeypatch.setattr(migrating, "upgrade", killed)
    with pytest.raises(LedgerUnreadable):
        await ensure_current(place)
    assert outsider.execute("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace").fetchone() == (
        0,
    )
    monkeypatch.setattr(migrating, "upgrade", upgrade)
    assert (await ensure_current(place))[0] is None


@pytest.fixture
def plain_at():
    opened = []

    def connect(url):
        opened.append(PostgresOutsider(url))
        return opened[-1]

    yield connect
    for outsider in opened:
        outsider.close()


async def test_a_ledger_has_a_schema_of_its_own_where_it_is_told_to(empty_url):  # D20
    ids = set()
    for schema in ("first", "second"):
        async with await Ledger.open(f"{empty_url}?schema={schema}") as ledger:
            for submission in ScriptedRun().whole():
                ledger.journal.submit(submission).result()
            assert [run.run_id for run in (await ledger.reader.recent_runs()).rows] == ["run-1"]
            assert (await ledger.rebuild()).is_clean
        ids.add((await ensure_current(place_at(f"{empty_url}?schema={schema}")))[1].ledger_id)
    assert len(ids) == 2


async def spoil(url, *statements):
    connection = await asyncpg.connect(url)
    for statement in statements:
        await connection.execute(statement)
    await connection.close()


UNUSABLE = {
    "another database": ("CREATE TABLE customer (name text)", NotALedger),
    "another database with migrations": ("CREATE TABLE alembic_version (version_num text)", NotALedger),
}


@pytest.mark.parametrize(("statement", "kind"), UNUSABLE.values(), ids=UNUSABLE)
async def test_what_is_no_ledger_is_named_and_left_alone(empty_url, plain_at, statement, kind):
    await spoil(empty_url, statement)
    count = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
    before = plain_at(empty_url).execute(count).fetchone()
    for open_it in (Ledger.open, LedgerReader.open):
        with pytest.raises(kind) as caught:
            await open_it(empty_url)
        assert str(caught.value.place) == empty_url
    assert plain_at(empty_url).execute(count).fetchone() == before


@pytest.mark.parametrize(
    "newer",
    [
        "UPDATE alembic_version SET version_num = '0099'",
        "UPDATE ledger_meta SET value = '2' WHERE key = 'format_version'",
    ],
)
async def test_a_newer_ledger_is_refused(database, newer):
    await spoil(database.url, newer)
    for open_it in (Ledger.open, LedgerReader.open):
        with pytest.raises(LedgerTooNew):
            await open_it(database.url)


async def test_a_reader_migrates_nothing(empty_url):
    with pytest.raises(LedgerMissing):
        await LedgerReader.open(empty_url)
    await ensure_current(place_at(empty_url), revision="0001")
    with pytest.raises(LedgerNotMigrated):
        await LedgerReader.open(empty_url)


async def test_a_database_or_server_that_is_not_there_is_named_without_its_password(postgres_server):
    secret = postgres_server.url("nowhere").replace("postgres@", "postgres:secret@")
    with pytest.raises(LedgerMissing) as caught:
        await Ledger.open(secret)
    assert "secret" not in str(caught.value)
    gone = re.sub(r":\d+/", ":1/", secret)
    for open_it in (Ledger.open, LedgerReader.open):
        with pytest.raises(LedgerUnreadable, match="cannot be reached") as caught:
            await open_it(gone)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["postgresql://h:x/db", "postgresql://h/db?schema=", "postgresql://h/db?schema=a.b", "postgresql://h/\0"]
)
async def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(UnsupportedUrl):
        await Ledger.open(url)


def test_the_command_says_what_it_did_and_checks_without_changing_anything(empty_url):
    def call(*args):
        done = CliRunner().invoke(cli.migrate, ["--db", empty_url, *args])
        return done.exit_code, done.output.strip()

    assert call("--check")[0] == 2
    assert call() == (2, f"Error: {empty_url} does not exist")
    asyncio.run(ensure_current(place_at(empty_url), revision="0001"))
    assert call("--check") == (1, f"{empty_url} is at schema 0001, and {HEAD_REVISION} is needed")
    assert call() == (0, f"{empty_url} is now at schema {HEAD_REVISION} (before: 0001)")
    assert call("--check") == (0, f"{empty_url} is up to date (schema {HEAD_REVISION})")


async def test_the_server_must_be_new_enough(database, monkeypatch):
    monkeypatch.setattr("ledger.store.postgres.probe.VERSION_MIN", 990_000)
    with pytest.raises(LedgerUnreadable, match="and 15 is needed"):
        await Ledger.open(database.url)
