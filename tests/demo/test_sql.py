"""The SQL tool on real servers: what it reads, how it is bounded and stopped, and that nothing writes through it."""

import json
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import dataclass

import pytest

from demo.bounds import CHAT_LIMITS, SQL_ROWS_MAX, TOOL_RESULT_BYTES_MAX
from demo.tools import sql as sql_tool
from demo.tools.errors import DatabaseUnreachable, QueryFailed, QueryRefused, QueryTimedOut
from demo.tools.sql import query_database
from demo.tools.sql_check import Checked
from harness import CancelReason, Harness
from tests.servers.mariadb import mariadb_served

TABLE = (
    "CREATE TABLE job (id INTEGER PRIMARY KEY, state VARCHAR(20), note TEXT)",
    "INSERT INTO job VALUES (1, 'done', NULL), (2, 'failed', 'it''s 100% full \\ \"here\"'), (3, 'failed', 'x')",
)
MANY = "SELECT a.id FROM job a, job b, job c, job d, job e, job f"
SLOW = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    "postgresql": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i % 9 + 1 FROM n) SELECT count(*) FROM n",
    "mysql": "SELECT count(*) FROM information_schema.columns a, information_schema.columns b, "
    "information_schema.columns c",
}


@dataclass(frozen=True)
class Database:
    """One of the three, with the table `job`."""

    engine: str
    url: str


@pytest.fixture(scope="module")
def databases(tmp_path_factory, postgres_server):
    file = tmp_path_factory.mktemp("sql") / "app #1.db"
    with closing(sqlite3.connect(file)) as db:
        for statement in TABLE:
            db.execute(statement)
        db.commit()
    name = postgres_server.create_database()
    postgres_server.execute(*TABLE, database=name)

    with mariadb_served() as mariadb:
        mariadb.query("USE test", TABLE[0], TABLE[1].replace("\\", "\\\\"))
        yield {
            "sqlite": Database("sqlite", f"sqlite:///{file}"),
            "postgresql": Database("postgresql", postgres_server.url(name)),
            "mysql": Database("mysql", mariadb.url()),
        }


@pytest.fixture(params=["sqlite", "postgresql", "mysql"])
def database(request, databases):
    return databases[request.param]


def test_a_select_gives_columns_and_rows(run, database):
    found = query_database(run, "SELECT id, state FROM job WHERE note LIKE '%100%%' -- why", url=database.url)
    assert (found["columns"], found["rows"]) == (["id", "state"], [[2, "failed"]])
    assert (found["engine"], found["limits_reached"]) == (database.engine, [])


def test_a_text_comes_back_as_it_was_asked_for(run, database):
    text = r"""it''s "quoted" \ `and` % ; /* not */ -- a comment"""
    asked = text.replace("\\", "\\\\") if database.engine == "mysql" else text
    found = query_database(run, f"SELECT '{asked}' AS x", url=database.url)
    assert found["rows"] == [[text.replace("''", "'")]]


def test_more_rows_than_are_shown_are_cut_and_the_cut_is_said(run, database):
    found = query_database(run, f"{MANY} LIMIT 100000", url=database.url)
    assert (len(found["rows"]), found["limits_reached"]) == (SQL_ROWS_MAX, ["rows"])


def test_exactly_as_many_rows_as_are_shown_are_no_cut(run, database):
    found = query_database(run, f"{MANY} LIMIT {SQL_ROWS_MAX}", url=database.url)
    assert (len(found["rows"]), found["limits_reached"]) == (SQL_ROWS_MAX, [])


def test_wide_rows_keep_the_bound_of_a_result(run, database):
    columns = ", ".join(f"REPLACE('{'é' * 250}', 'q', a.note) AS c{number}" for number in range(12))
    found = query_database(run, f"SELECT {columns} FROM job a, job b", url=database.url)
    assert len(json.dumps(found)) <= TOOL_RESULT_BYTES_MAX
    assert found["limits_reached"] == ["shown bytes"]


def test_a_statement_that_takes_too_long_is_stopped(run, database, monkeypatch):
    monkeypatch.setattr("demo.tools.sql.Timer", lambda _, stop: threading.Timer(0.3, stop))
    began = time.perf_counter()
    with pytest.raises(QueryTimedOut):
        query_database(run, SLOW[database.engine], url=database.url)
    assert time.perf_counter() - began < 4  # the server's own limit is 5


def test_the_server_stops_it_too_where_nobody_here_does(run, databases, monkeypatch):
    monkeypatch.setattr("demo.tools.sql_guards.Stopper.stop", lambda self, *_: None)
    for engine, setting in (("postgresql", "SET LOCAL statement_timeout = 200"), ("mysql", None)):
        if setting:
            monkeypatch.setitem(sql_tool.BEFORE, engine, (*sql_tool.BEFORE[engine], setting))
        monkeypatch.setattr("demo.tools.sql.MARIADB_TIMEOUT", "SET SESSION max_statement_time = 0.2")
        with pytest.raises(QueryTimedOut):
            query_database(run, SLOW[engine], url=databases[engine].url)


async def test_the_end_of_the_run_stops_a_statement(journal, database):  # SPEC H3
    block = Harness(journal).run(session_id="s-1", limits=CHAT_LIMITS, timeout_s=60)
    run = await block.__aenter__()
    raised = []

    def ask():
        try:
            query_database(run, SLOW[database.engine], url=database.url)
        except QueryTimedOut as error:
            raised.append(error)

    began = time.perf_counter()
    asking = threading.Thread(target=ask)
    asking.start()
    time.sleep(0.3)
    run.cancellation.signal(CancelReason.USER_REQUESTED)
    asking.join(20)
    assert len(raised) == 1
    assert time.perf_counter() - began < 4
    with pytest.raises(Exception, match="CANCELLED"):
        await block.__aexit__(None, None, None)


def test_what_a_database_says_is_a_typed_error_without_the_statement(run, database):
    with pytest.raises(QueryFailed, match="no_such_table") as caught:
        query_database(run, "SELECT id FROM no_such_table WHERE id = 4711", url=database.url)
    assert "4711" not in caught.value.message


WRITES = [
    "INSERT INTO job VALUES (4, 'new', NULL)",
    "UPDATE job SET state = 'x'",
    "DELETE FROM job",
    "DROP TABLE job",
    "CREATE TABLE other (x int)",
    "ALTER TABLE job ADD COLUMN y int",
]


class TestWithoutTheCheck:
    """The second line alone: what the first would have refused reaches a server that does not write."""

    @pytest.fixture(autouse=True)
    def unchecked(self, monkeypatch):
        monkeypatch.setattr("demo.tools.sql.check", lambda sql, engine: Checked(sql, is_select=False))

    @pytest.mark.parametrize("sql", WRITES)
    def test_no_statement_writes(self, run, database, sql):
        with pytest.raises(QueryFailed):
            query_database(run, sql, url=database.url)

    @pytest.mark.parametrize(
        "sql",
        [
            "WITH gone AS (DELETE FROM job RETURNING *) SELECT * FROM gone",
            "EXPLAIN ANALYZE DELETE FROM job",
            "SELECT * INTO other FROM job",
            "SELECT id FROM job FOR UPDATE",
        ],
    )
    def test_postgresql_writes_nothing_in_disguise(self, run, databases, sql):
        with pytest.raises(QueryFailed, match="read-only"):
            query_database(run, sql, url=databases["postgresql"].url)

    @pytest.mark.parametrize(
        "sql",
        [
            "ATTACH DATABASE '/tmp/tachograph-attached.db' AS other",
            "PRAGMA query_only = OFF",
            "PRAGMA journal_mode = DELETE",
            "SELECT load_extension('x')",
            "SELECT 'aaaa' REGEXP '(a+)+$'",
            "VACUUM INTO '/tmp/tachograph-vacuumed.db'",
            "SELECT * FROM pragma_database_list",
            "SELECT zeroblob(100000000)",
            "SELECT 'a' LIKE '" + "%a" * 200 + "'",
        ],
    )
    def test_sqlite_does_nothing_but_read(self, run, databases, sql):
        with pytest.raises(QueryFailed):
            query_database(run, sql, url=databases["sqlite"].url)

    def test_one_statement_is_one_statement(self, run, databases):
        for engine in ("sqlite", "mysql"):
            with pytest.raises(QueryFailed):
                query_database(run, "SELECT 1; DELETE FROM job", url=databases[engine].url)
        with pytest.raises(QueryFailed, match="read-only"):
            query_database(run, "SELECT 1; DELETE FROM job", url=databases["postgresql"].url)

    def test_the_rows_are_still_there(self, run, database):
        assert query_database(run, "SELECT count(*) FROM job", url=database.url)["rows"] == [[3]]


@pytest.mark.parametrize(
    "url", ["sqlite:////nowhere/none.db", "postgresql://u:secret@127.0.0.1:1/x", "mysql://u:secret@127.0.0.1:1/x"]
)
def test_a_database_that_is_not_there_is_a_typed_error_without_its_address(run, url):
    with pytest.raises(DatabaseUnreachable) as caught:
        query_database(run, "SELECT 1", url=url)
    assert "secret" not in caught.value.message
    assert "127" not in caught.value.message


def test_a_refused_statement_never_reaches_the_database(run):
    with pytest.raises(QueryRefused):
        query_database(run, "DELETE FROM job", url="postgresql://u@127.0.0.1:1/x")


def test_every_value_of_a_database_has_a_form_in_json(run, databases):
    found = query_database(
        run,
        "SELECT '1 day'::interval, 1.5::numeric, 'NaN'::float8, 9223372036854775807, '\\xff00'::bytea, "
        "'{\"a\": 1}'::jsonb, ARRAY[1, 2], true, NULL, date '2026-01-02'",
        url=databases["postgresql"].url,
    )
    (row,) = found["rows"]
    assert row[:5] == ["1 day, 0:00:00", "1.5", "nan", "9223372036854775807", "<2 bytes>"]
    assert row[5:] == ['{"a": 1}', "[1, 2]", True, None, "2026-01-02"]
