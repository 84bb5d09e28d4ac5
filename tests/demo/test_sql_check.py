"""Which statements are let through to a database, told by their syntax alone: what is not on a list is refused."""

import logging

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from demo.bounds import SQL_ROWS_MAX
from demo.tools.errors import QueryRefused
from demo.tools.sql_check import DIALECTS, check

READING = {
    "postgresql": [
        "SELECT relname, n_live_tup FROM pg_stat_user_tables ORDER BY n_live_tup DESC LIMIT 5",
        "SELECT state, count(*) FILTER (WHERE wait_event IS NOT NULL) FROM pg_stat_activity GROUP BY state",
        "SELECT pid, now() - query_start AS age, pg_blocking_pids(pid) FROM pg_stat_activity WHERE state <> 'idle'",
        "SELECT pg_size_pretty(pg_database_size(current_database()))",
        "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT * FROM n",
        "SELECT a ->> 'b', c::int[], d @> '{}', e[1:2], f ~ 'x', g ILIKE 'y' FROM t WHERE h = ANY (ARRAY[1])",
        "SELECT DISTINCT ON (a) a, row_number() OVER (PARTITION BY b ORDER BY c) FROM t",
        "SELECT date_trunc('hour', ts), extract(epoch FROM ts) FROM t GROUP BY ROLLUP (a)",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM t",
        "EXPLAIN SELECT * FROM t",
        "SHOW max_connections;",
    ],
    "mysql": [
        "SELECT `a`, IFNULL(b, 1), IF(a, 1, 2), DATE_FORMAT(c, '%Y'), a REGEXP 'x' FROM t FORCE INDEX (i) LIMIT 1, 2",
        "SELECT table_name, ROUND(data_length / 1024, 1) FROM information_schema.tables ORDER BY data_length DESC",
        "SHOW GLOBAL STATUS LIKE 'Threads%'",
        "SHOW FULL PROCESSLIST",
        "SHOW CREATE TABLE job",
    ],
    "sqlite": [
        "SELECT name, sql FROM sqlite_master WHERE type = 'table'",
        "SELECT json_extract(x, '$.a'), datetime('now', '-1 day'), ifnull(a, b), total(c), group_concat(d) FROM t",
        "EXPLAIN QUERY PLAN SELECT * FROM t",
    ],
}
REFUSED = {
    "postgresql": [
        "SELECT 1; DROP TABLE t",
        "SELECT 1;; SELECT 2",
        "SELECT $$;$$; DELETE FROM t",
        "WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d",
        "WITH i AS (INSERT INTO t VALUES (1) RETURNING x) SELECT * FROM i",
        "SELECT * INTO other FROM t",
        "SELECT * FROM t FOR UPDATE",
        "SELECT pg_sleep(10)",
        "SELECT pg_catalog.pg_sleep(10)",
        'SELECT "pg_sleep"(10)',
        "SELECT * FROM pg_sleep(10)",
        "SELECT 1 WHERE (SELECT pg_sleep(10)) IS NULL",
        "SELECT 1 ORDER BY pg_sleep(1)",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT * FROM pg_ls_dir('/')",
        "SELECT * FROM dblink('host=x', 'DELETE FROM t') AS t(x int)",
        "SELECT query_to_xml('DELETE FROM t', true, true, '')",
        "SELECT lo_import('/etc/passwd'), lo_from_bytea(0, 'x')",
        "SELECT nextval('s'), setval('s', 1)",
        "SELECT set_config('transaction_read_only', 'off', false)",
        "SELECT pg_terminate_backend(1), pg_cancel_backend(1), pg_reload_conf()",
        "SELECT pg_advisory_lock(1)",
        "SELECT repeat('x', 1000000000)",
        "SELECT public.lower('x')",
        "SELECT 1 OPERATOR(public.+) 2",
        "SELECT passwd FROM pg_shadow",
        "SELECT rolpassword FROM pg_catalog.pg_authid",
        "SELECT 1 LIMIT (SELECT 1000000)",
        "EXPLAIN ANALYZE DELETE FROM t",
        "EXPLAIN ANALYZE SELECT 1",
        "EXPLAIN (ANALYZE) DELETE FROM t",
        "EXPLAIN DELETE FROM t",
        "SHOW max_connections; DROP TABLE t",
        "COPY t TO PROGRAM 'sh'",
        "DO $$ BEGIN DELETE FROM t; END $$",
        "CALL f()",
        "EXECUTE prepared",
        "SET transaction_read_only = off",
        "BEGIN",
        "LISTEN x",
        "VACUUM",
        "SELECT $1, :name",
    ],
    "mysql": [
        "SELECT SLEEP(10)",
        "SELECT BENCHMARK(1000000000, SHA2('x', 512))",
        "SELECT LOAD_FILE('/etc/passwd')",
        "SELECT 1 INTO OUTFILE '/tmp/x'",
        "SELECT 1 INTO DUMPFILE '/tmp/x'",
        "SELECT 1 INTO @x",
        "SELECT @a := 1",
        "SELECT GET_LOCK('x', 10)",
        "SELECT * FROM t LOCK IN SHARE MODE",
        "SELECT authentication_string FROM mysql.user",
        "SELECT 1 PROCEDURE ANALYSE()",
        "HANDLER t OPEN",
        "SHOW GRANTS FOR 'x'@'y'",
        "SHOW TABLES; DROP TABLE t",
        "SHOW CREATE TABLE `a` -- x",
        "LOAD DATA INFILE 'x' INTO TABLE t",
    ],
    "sqlite": [
        "ATTACH DATABASE '/tmp/x' AS y",
        "PRAGMA query_only = OFF",
        "PRAGMA table_info(t)",
        "SELECT * FROM pragma_table_info('t')",
        "SELECT load_extension('x')",
        "SELECT writefile('/tmp/x', 'y'), readfile('/etc/passwd')",
        "SELECT zeroblob(1000000000), randomblob(1000000000)",
        "SELECT printf('%1000000000d', 1), format('%1000000000d', 1)",
        "SHOW TABLES",
        "VACUUM INTO '/tmp/x'",
    ],
}


def each(statements):
    return [(engine, sql) for engine, all_of_it in statements.items() for sql in all_of_it]


@pytest.mark.parametrize(("engine", "sql"), each(READING))
def test_what_reads_is_let_through_and_is_the_same_when_it_is_checked_again(engine, sql):
    written = check(sql, engine).sql
    assert check(written, engine).sql == written


@pytest.mark.parametrize(("engine", "sql"), each(REFUSED))
def test_everything_else_is_refused(engine, sql, caplog):
    with caplog.at_level(logging.DEBUG), pytest.raises(QueryRefused):
        check(sql, engine)
    assert caplog.records == []


@pytest.mark.parametrize("engine", DIALECTS)
@pytest.mark.parametrize("sql", ["", ";", "--", "SELECT '", "SELECT \0", "\ud800", "(" * 3000, "SELECT (" * 900])
def test_what_is_no_statement_is_refused(engine, sql):
    with pytest.raises(QueryRefused):
        check(sql, engine)


@pytest.mark.parametrize("engine", DIALECTS)
def test_comments_do_not_run_whoever_would_run_them(engine):
    written = check("SELECT /*!50000 SLEEP(9), */ 1 /* x */ -- ; DROP TABLE t\n", engine).sql
    assert written == f"SELECT 1 LIMIT {SQL_ROWS_MAX + 1}"


@pytest.mark.parametrize(
    ("asked", "runs"), [("", SQL_ROWS_MAX + 1), (" LIMIT 7", 7), (" LIMIT 0", 0), (" LIMIT 999999", SQL_ROWS_MAX + 1)]
)
def test_a_statement_gets_a_limit_of_rows(asked, runs):
    assert check(f"SELECT a FROM t{asked}", "sqlite").sql == f"SELECT a FROM t LIMIT {runs}"
    assert check(f"SELECT a FROM t UNION SELECT 1{asked}", "sqlite").sql.endswith(f"SELECT 1 LIMIT {runs}")


@given(
    text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40),
    engine=st.sampled_from(list(DIALECTS)),
)
def test_a_text_stays_one_text(text, engine):
    quoted = sqlglot.exp.Literal.string(text).sql(DIALECTS[engine])
    tree = sqlglot.parse_one(check(f"SELECT {quoted}", engine).sql, read=DIALECTS[engine])
    assert [node.name for node in tree.find_all(sqlglot.exp.Literal) if node.is_string] == [text]
