"""The schema: made from nothing, brought up to date with rows in it, the same for everybody."""

import asyncio
import io
import re
import sqlite3

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.runtime.environment import EnvironmentContext
from alembic.script import ScriptDirectory
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from ledger import Ledger, LedgerReader
from ledger.copies.backup import back_up
from ledger.migrate import ensure_current, lock_of, migrations_folder
from ledger.projections.rows import CaseRow, RunRow, SessionShare, StepRow, ToolRow
from ledger.run_filter import RunFilter
from ledger.schema import metadata
from ledger.store.identity import HEAD_REVISION, REVISIONS
from ledger.verifying import verify
from tests.ledger.scripted import ScriptedRun
from tests.ledger.tables import PROJECTIONS, dump

COPIED = ("ledger_meta", "stream", "event", "content", *PROJECTIONS)
ADDED = {
    "0002": {"diagnosis_run": ["orchestration_trace"]},
    "0003": {
        "diagnosis_run": ["currency", "price_table", "cost_unknown_count", "reserved", "incidents"],
        "agent_step": ["timeout_us", "cost_micros", "first_output_us", "output_chunks", "hidden_retry_count"],
        "tool_invocation": ["timeout_us", "hidden_retry_count"],
    },
    "0004": {"content": ["erased_seq"]},
    "0007": {"follower": ["session_id", "run_id"]},
}
"""Columns by the migration that added them, and by table."""
TABLES = {"erasure", "erased_run", "follower", "tile", "checkpoint", "token", "sign_in"}
"""Tables that a later migration added,"""
INDEXES = {"chat_session_by_activity", *(f"diagnosis_run_by_{name}" for name in ("agent", "actor", "environment"))}
"""and indexes of tables that were there;"""
SEARCH = {"run_text", "run_text_index", *(f"run_text_index_{part}" for part in ("config", "data", "docsize", "idx"))}
"""and what only SQLite has, which is no table in code."""
JSON = {"orchestration_trace", "reserved", "incidents"}
TEXT = {"currency", "price_table"}
IDS = {"session_id", "run_id"}


def migrate(path, revision=HEAD_REVISION):
    lock = lock_of(path)
    try:
        return ensure_current(path, lock, revision=revision)
    finally:
        lock.close()


@pytest.fixture
def fresh(tmp_path):
    return tmp_path / "fresh.db"


@pytest.fixture
def connect():
    opened = []

    def connection(path):
        opened.append(sqlite3.connect(path, isolation_level=None))
        return opened[-1]

    yield connection
    for one in opened:
        one.close()


@pytest.fixture
async def at_revision(path, fresh, connect):
    """Makes a ledger as a migration left it, with the rows of real runs: all but what came later."""
    async with await Ledger.open(path) as ledger:
        for number in range(3):
            for submission in ScriptedRun(f"run-{number}", f"session-{number % 2}").whole():
                ledger.journal.submit(submission).result()
        await ledger.record_feedback("session-0", "run-0", useful=True, comment="thanks")

    def make(revision):
        migrate(fresh, revision)
        connection = connect(fresh)
        connection.execute("ATTACH ? AS newer", (str(path),))
        (rule,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'ledger_meta_delete'").fetchone()
        connection.execute("DROP TRIGGER ledger_meta_delete")
        connection.execute("DELETE FROM ledger_meta")
        connection.execute(rule)
        for table in COPIED:
            columns = ", ".join(row[1] for row in connection.execute(f"PRAGMA main.table_info({table})"))
            connection.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM newer.{table} ORDER BY 1")
        connection.execute("UPDATE diagnosis_run SET fold_version = 1")
        connection.execute("DETACH newer")
        connection.close()
        return fresh

    return make


@pytest.fixture
async def at_0001(at_revision):
    return at_revision("0001")


def schema_of(connection):
    """Every table, index and trigger, by name."""
    return dict(connection.execute("SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'"))


def without_what_was_added(create, table, integer, id_type="TEXT"):
    """The statement that creates a table as its first migration left it."""
    kinds = dict.fromkeys(JSON, "JSON") | dict.fromkeys(TEXT, "TEXT") | dict.fromkeys(IDS, id_type)
    for columns in ADDED.values():
        for column in columns.get(table, ()):
            kind = kinds.get(column, integer)
            assert f" {column} {kind}, " in create
            create = create.replace(f" {column} {kind}, ", " ")
    return create


def _is_no_index_table(name, kind, _parents):
    """Those of the search index are as each engine needs them, and no table in code."""
    return kind != "table" or not name.startswith("run_text")


def test_from_nothing_the_schema_is_that_of_the_tables_in_code(fresh):
    assert migrate(fresh)[0] is None
    engine = sa.create_engine(f"sqlite:///{fresh}")
    with engine.connect() as connection:
        here = MigrationContext.configure(connection, opts={"include_name": _is_no_index_table})
        assert compare_metadata(here, metadata) == []
    engine.dispose()


def test_from_nothing_every_constraint_is_that_of_the_tables_in_code(fresh, tmp_path, connect):
    migrate(fresh)
    migrate(tmp_path / "first.db", "0001")
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'code.db'}")
    metadata.create_all(engine)
    engine.dispose()
    migrated, code = schema_of(connect(tmp_path / "first.db")), schema_of(connect(tmp_path / "code.db"))
    assert {name for name in code if name not in migrated} == TABLES | INDEXES
    for name, sql in code.items():
        if name in TABLES | INDEXES:
            continue
        expected = without_what_was_added(re.sub(r"\s+", " ", sql), name, "INTEGER")
        assert re.sub(r"\s+", " ", migrated[name]) == expected


def test_the_rows_that_are_written_have_the_columns_of_the_tables():
    tables = metadata.tables
    for table, row in (
        ("diagnosis_run", RunRow),
        ("agent_step", StepRow),
        ("tool_invocation", ToolRow),
        ("case_library", CaseRow),
    ):
        assert set(row._fields) == set(tables[table].columns.keys())
    assert {*SessionShare._fields, "expires_us"} == set(tables["chat_session"].columns.keys())


def test_the_program_knows_exactly_the_migrations_there_are():
    scripts = ScriptDirectory(str(migrations_folder()))
    assert tuple(reversed([script.revision for script in scripts.walk_revisions()])) == REVISIONS


def test_no_table_has_a_default_or_counts_by_itself(fresh, connect):  # D18
    migrate(fresh)
    for name, sql in schema_of(connect(fresh)).items():
        assert "DEFAULT" not in sql.upper().replace("DEFAULT VALUES", ""), name
        assert "AUTOINCREMENT" not in sql.upper(), name


def test_each_ledger_has_an_identity_of_its_own(tmp_path):  # D20
    first, second = migrate(tmp_path / "a.db")[1], migrate(tmp_path / "b.db")[1]
    assert first.ledger_id != second.ledger_id
    assert re.fullmatch("[0-9a-f]{32}", first.ledger_id)
    assert migrate(tmp_path / "a.db")[1] == first


@pytest.fixture(scope="module")
def for_postgresql():
    """What the migrations would say to a PostgreSQL server."""
    config, script, said = Config(), ScriptDirectory(str(migrations_folder())), io.StringIO()
    config.attributes.update(ledger_id="0123456789abcdef" * 2, schema="public")
    with EnvironmentContext(config, script, fn=lambda *_: script._upgrade_revs("head", None), as_sql=True) as context:
        context.configure(dialect_name="postgresql", output_buffer=said)
        with context.begin_transaction():
            context.run_migrations()
    return re.sub(r"\s+", " ", said.getvalue())


def test_on_postgresql_the_schema_is_that_of_the_tables_in_code(for_postgresql):
    dialect = postgresql.dialect()
    for table in metadata.tables.values():
        for construct in (CreateTable(table), *map(CreateIndex, table.indexes)):
            code = re.sub(r"\s+", " ", str(construct.compile(dialect=dialect))).strip()
            if isinstance(construct, CreateTable):
                code = without_what_was_added(code, table.name, "BIGINT", 'TEXT COLLATE "C"')
            assert code in for_postgresql


def test_on_postgresql_the_columns_that_were_added_are_those_of_the_tables_in_code(for_postgresql):
    dialect = postgresql.dialect()
    added = re.findall(r'ALTER TABLE (\w+) ADD COLUMN (\w+) (\w+(?: COLLATE "C")?);', for_postgresql)
    assert [(table, column) for table, column, _ in added] == [
        (table, column) for tables in ADDED.values() for table, columns in tables.items() for column in columns
    ]
    for table, column, kind in added:
        assert re.sub(r"\s+", " ", metadata.tables[table].columns[column].type.compile(dialect)) == kind
        assert metadata.tables[table].columns[column].nullable


def test_on_postgresql_ids_are_compared_as_bytes_and_indexes_are_partial(for_postgresql):
    names = "(?:stream|session|run|event|owner|case|diagnosis|attempt)_id|digest"
    ids = re.findall(rf'\b({names}) TEXT( COLLATE "C")?', for_postgresql)
    assert len(ids) > 15
    assert {collation for _, collation in ids} == {' COLLATE "C"'}
    assert "ON stream (owner_id) WHERE owner_id IS NOT NULL" in for_postgresql
    assert "ON event (stream_id) WHERE type = 'run.terminated'" in for_postgresql


def test_on_postgresql_the_ledger_has_the_identity_it_is_given(for_postgresql):
    assert f"VALUES ('ledger_id', '{'0123456789abcdef' * 2}')" in for_postgresql
    assert "randomblob" not in for_postgresql


async def test_0002_adds_one_nullable_json_column_and_changes_nothing_else(at_0001, connect):  # R14
    connection = connect(at_0001)
    before, rows = schema_of(connection), dump(connection, *COPIED)
    assert migrate(at_0001, "0002")[0] == "0001"
    after = schema_of(connection)
    assert {name for name in after if after[name] != before.get(name)} == {"diagnosis_run"}
    assert set(after) == set(before)
    added = [row for row in connection.execute("PRAGMA table_info(diagnosis_run)") if row[1] == "orchestration_trace"]
    assert [(kind, not_null, default) for _, _, kind, not_null, default, _ in added] == [("JSON", 0, None)]
    now = dump(connection, *COPIED)
    now["diagnosis_run"] = [row.removesuffix(" orchestration_trace=NULL") for row in now["diagnosis_run"]]
    assert now == rows


async def test_rows_from_before_0002_are_read_without_backfill_and_filled_by_a_rebuild(at_0001):  # R14
    async with await Ledger.open(at_0001) as ledger:
        before = await ledger.reader.trace("session-0", "run-0")
        assert before.run.orchestration_trace is None
        assert before.run.summary.status == "SUCCESS"
        report = await ledger.rebuild()
        assert report.runs_changed == ("run-0", "run-1", "run-2")
        after = await ledger.reader.trace("session-0", "run-0")
        assert [transition["to"] for transition in after.run.orchestration_trace["transitions"]] == [
            "planner",
            "executor",
        ]


async def test_0003_adds_nullable_columns_and_changes_nothing_else(at_revision, connect):
    path = at_revision("0002")
    connection = connect(path)
    before, rows = schema_of(connection), dump(connection, *COPIED)
    assert migrate(path, "0003")[0] == "0002"
    after = schema_of(connection)
    assert {name for name in after if after[name] != before.get(name)} == set(ADDED["0003"])
    assert set(after) == set(before)
    now = dump(connection, *COPIED)
    for table, columns in ADDED["0003"].items():
        info = {row[1]: row[2:5] for row in connection.execute(f"PRAGMA table_info({table})")}
        kinds = ["JSON" if column in JSON else "TEXT" if column in TEXT else "INTEGER" for column in columns]
        assert [info[column] for column in columns] == [(kind, 0, None) for kind in kinds]
        now[table] = [row.removesuffix("".join(f" {column}=NULL" for column in columns)) for row in now[table]]
    assert now == rows


async def test_rows_from_before_0003_are_right_as_they_are_and_a_rebuild_raises_their_version_alone(
    at_revision, connect
):
    path = at_revision("0002")
    async with await Ledger.open(path) as ledger:
        before = await ledger.reader.trace("session-0", "run-0")
        assert (before.run.incidents, before.run.reserved, before.run.currency) == ({}, {}, None)
        rows = dump(connect(path))
        assert (await ledger.rebuild()).runs_changed == ("run-0", "run-1", "run-2")
        assert await ledger.reader.trace("session-0", "run-0") == before
        now = dump(connect(path))
    rows["diagnosis_run"] = [row.replace("fold_version=1", "fold_version=2") for row in rows["diagnosis_run"]]
    assert now == rows


async def test_a_ledger_from_before_0003_is_verified_though_its_rows_wait_for_a_rebuild(at_revision, connect):
    path = at_revision("0002")
    connect(path).execute("UPDATE diagnosis_run SET orchestration_trace = NULL")
    migrate(path)
    report = await verify(path)
    assert (report.findings, report.runs_outdated) == ((), 3)
    assert (await back_up(path, path.with_name("backup.db"), is_verified=True)).verified.runs_outdated == 3


async def test_a_run_that_began_before_0002_goes_on_after_it(at_0001):
    async with await Ledger.open(at_0001) as ledger:
        await ledger.record_feedback("session-1", "run-1", useful=False)
        assert (await ledger.reader.trace("session-1", "run-1")).feedback["useful"] is False


async def test_opening_a_ledger_brings_it_up_to_date(at_0001):
    async with await Ledger.open(at_0001):
        pass
    async with await LedgerReader.open(at_0001) as reader:
        assert len((await reader.recent_runs()).rows) == 3


async def test_four_threads_that_upgrade_at_once_all_succeed(at_0001, connect):
    befores = await asyncio.gather(*(asyncio.to_thread(migrate, at_0001) for _ in range(4)))
    assert sorted(before for before, _ in befores) == ["0001", *[HEAD_REVISION] * 3]


def test_a_migration_that_fails_leaves_the_ledger_as_it_was(fresh, connect, monkeypatch):
    migrate(fresh, "0001")
    before = schema_of(connect(fresh))
    connect(fresh).execute("CREATE TABLE orchestration_trace_blocker (x)")
    connect(fresh).execute("ALTER TABLE diagnosis_run ADD COLUMN orchestration_trace TEXT")
    with pytest.raises(Exception, match="cannot be migrated"):
        migrate(fresh)
    assert connect(fresh).execute("SELECT version_num FROM alembic_version").fetchone() == ("0001",)
    assert set(schema_of(connect(fresh))) == {*before, "orchestration_trace_blocker"}


async def test_0004_adds_what_erasing_needs_and_changes_nothing_else(at_revision, connect):
    path = at_revision("0003")
    connection = connect(path)
    before, rows = schema_of(connection), dump(connection, *COPIED)
    assert migrate(path)[0] == "0003"
    after = schema_of(connection)
    added = {"content_insert", "content_update", "content_delete"}
    later = {f"{table}_{verb}" for table in ("tile", "checkpoint") for verb in ("insert", "update", "delete")}
    later |= {"stream_owner", "event_insert", *INDEXES, *SEARCH}
    assert {name for name in after if after[name] != before.get(name)} == {"content", *TABLES, *added, *later}
    now = dump(connection, *COPIED)
    now["content"] = [row.removesuffix(" erased_seq=NULL") for row in now["content"]]
    assert now == rows


async def test_contents_from_before_0004_can_be_erased_after_it(at_revision):
    async with await Ledger.open(at_revision("0003")) as ledger:
        report = await ledger.erase(run=("session-0", "run-0"))
        assert (report.content_count, report.stage) == (7, "FILE")
        assert (await ledger.reader.trace("session-0", "run-0")).answer.state == "erased"


async def test_0011_finds_the_runs_that_were_there_by_their_words(at_revision):
    path = at_revision("0010")
    migrate(path)
    async with await LedgerReader.open(path) as reader:
        runs = (await reader.runs()).rows
        found = {run.run_id for run in (await reader.runs(RunFilter(text="host-7"))).rows}
        assert found == {run.run_id for run in runs if "host 7" in run.query}
        assert found
