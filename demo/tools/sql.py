"""Read-only SQL over a database that the operator names: checked by its syntax first, held by the server second.

The server's part is a connection or transaction that cannot write, with a time for each statement. Its role should be
one that can only read, too: no list can know what a database's own views and functions do.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Timer
from typing import Any, TypedDict

from sqlalchemy import Connection, CursorResult, NullPool, create_engine, make_url
from sqlalchemy import Engine as Connector
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from demo.bounds import SQL_LOCK_TIMEOUT_S, SQL_ROWS_MAX, SQL_TIMEOUT_S, TOOL_SHOWN_BYTES_MAX
from demo.databases import DRIVERS, Engine, engine_of
from demo.tools.errors import DatabaseUnreachable, QueryFailed, QueryTimedOut, ToolError
from demo.tools.sql_cells import Cell, cut, shown_cell
from demo.tools.sql_check import Checked, check
from demo.tools.sql_guards import BEFORE, MARIADB_TIMEOUT, MYSQL_TIMEOUT, Stopper, guard_sqlite
from harness import RunContext

ROWS_FETCHED = 10
"""At once from a server, since each may be large."""
TIMED_OUT = frozenset(
    {
        *("57014", "55P03", "25P03"),  # PostgreSQL: cancelled, lock not available, idle in transaction
        *(1205, 1317, 1969, 3024),  # MySQL and MariaDB: lock, interrupted, max_statement_time, max_execution_time
        *("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_INTERRUPT"),
    }
)


class Rows(TypedDict):
    """What a statement gave, as far as it is shown."""

    engine: Engine
    sql: str
    """As it ran."""
    columns: list[str]
    rows: list[list[Cell]]
    limits_reached: list[str]
    """`rows` or `shown bytes` if there were more; a single long text ends with `…`."""


def query_database(run: RunContext, sql: str, *, url: str) -> Rows:
    """The first rows of a SELECT, of what explains it, or of a SHOW; the end of the run stops it."""
    engine = engine_of(url)
    assert engine is not None, "checked when the app was opened"
    checked = check(sql, engine)
    with _connected(url, engine) as connection:
        stopper = Stopper(connection.connection.driver_connection)
        forget = run.cancellation.on_signal(stopper.stop)
        timer = Timer(SQL_TIMEOUT_S, stopper.stop)
        timer.daemon = True
        timer.start()
        try:
            return _rows(connection, checked, engine)
        except DBAPIError as error:
            raise _typed(error, is_stopped=stopper.is_stopped) from None
        finally:
            timer.cancel()
            forget()
            if stopper.is_stopped:
                connection.invalidate()
            stopper.close()


def _rows(connection: Connection, checked: Checked, engine: Engine) -> Rows:
    with closing(_executed(connection, checked, engine)) as result:
        columns = [cut(str(name)) for name in result.keys()]  # noqa: SIM118 -- iterating it gives rows
        rows: list[list[Cell]] = []
        size_bytes = len(json.dumps(columns))
        limits_reached: list[str] = []
        # At most one row more than is shown: `check` saw to that.
        for row in result:
            shown = [shown_cell(value) for value in row]
            size_bytes += len(json.dumps(shown))
            if len(rows) == SQL_ROWS_MAX or size_bytes > TOOL_SHOWN_BYTES_MAX:
                limits_reached.append("rows" if len(rows) == SQL_ROWS_MAX else "shown bytes")
                break
            rows.append(shown)
    return Rows(engine=engine, sql=cut(checked.sql), columns=columns, rows=rows, limits_reached=limits_reached)


def _executed(connection: Connection, checked: Checked, engine: Engine) -> CursorResult[Any]:
    for statement in BEFORE[engine]:
        connection.exec_driver_sql(statement)
    if engine == "mysql":
        is_mariadb = getattr(connection.dialect, "is_mariadb", False)
        connection.exec_driver_sql(MARIADB_TIMEOUT if is_mariadb else MYSQL_TIMEOUT)
    driver_connection = connection.connection.driver_connection
    if isinstance(driver_connection, sqlite3.Connection):
        guard_sqlite(driver_connection)
    # Without parameters a `%` is a plain character.
    options: dict[str, Any] = {"no_parameters": True}
    if checked.is_select:
        options |= {"stream_results": True, "max_row_buffer": ROWS_FETCHED}
    return connection.execution_options(**options).exec_driver_sql(checked.sql)


@contextmanager
def _connected(url: str, engine: Engine) -> Iterator[Connection]:
    """A connection of its own for one statement."""
    try:
        connector = _connector(url, engine)
        connection = connector.connect()
    except (SQLAlchemyError, OSError, sqlite3.Error) as error:
        cause = getattr(error, "orig", None) or error
        raise DatabaseUnreachable(f"the database cannot be connected to: {type(cause).__name__}") from None
    with closing(connection):
        yield connection


def _connector(url: str, engine: Engine) -> Connector:
    address = make_url(url).set(drivername=DRIVERS[engine])
    if engine == "sqlite":
        if not address.database:
            raise ArgumentError("names no file")
        file = Path(address.database).absolute().as_uri()

        def connect() -> sqlite3.Connection:
            return sqlite3.connect(
                f"{file}?mode=ro", uri=True, check_same_thread=False, timeout=SQL_LOCK_TIMEOUT_S, isolation_level=None
            )

        return create_engine(DRIVERS[engine] + "://", creator=connect, poolclass=NullPool)
    waits = {"connect_timeout": int(SQL_TIMEOUT_S)}
    if engine == "mysql":
        waits |= {"read_timeout": int(2 * SQL_TIMEOUT_S), "write_timeout": int(SQL_TIMEOUT_S)}
    else:
        # For a network that swallows everything.
        waits |= {"tcp_user_timeout": int(2000 * SQL_TIMEOUT_S), "keepalives_idle": int(SQL_TIMEOUT_S)}
    return create_engine(address, poolclass=NullPool, connect_args=waits)


def _typed(error: DBAPIError, *, is_stopped: bool) -> ToolError:
    """What the database says, without the statement that SQLAlchemy adds."""
    orig = error.orig
    args = orig.args if orig is not None else ()
    codes = {getattr(orig, "sqlstate", None), getattr(orig, "sqlite_errorname", None), args[0] if args else None}
    if is_stopped or codes & TIMED_OUT:
        return QueryTimedOut(f"stopped: it took over {SQL_TIMEOUT_S:.0f} s or waited for a lock, or the run ended")
    if error.connection_invalidated:
        return DatabaseUnreachable(f"the connection to the database broke: {type(orig).__name__}")
    said = str(args[1] if len(args) > 1 else orig).split("\n")[0]
    return QueryFailed(f"the database answers: {cut(said)}")
