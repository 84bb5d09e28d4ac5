"""What SQL a model may have run: one statement that only reads, by its syntax tree, of nodes and functions on a list.

What runs is written anew from the tree, so it is what was checked: no comment, no second statement, no quoting that a
server could read in another way survives. Everything that is not on a list is refused, also what is new in a dialect.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.mysql import MySQL
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.generators.mysql import MySQLGenerator

from demo.bounds import SQL_ROWS_MAX
from demo.databases import Engine
from demo.tools.errors import QueryRefused
from demo.tools.sql_lists import FUNCTIONS, FUNCTIONS_BY_NAME, NODES, SECRET_TABLES

EXPLAIN = re.compile(r"\s*EXPLAIN(\s+QUERY\s+PLAN)?\s+(?=SELECT\b|WITH\b)", re.IGNORECASE)
READS = re.compile(r"[\s(]*(SELECT|WITH)\b", re.IGNORECASE)
ONLY = "only SELECT, EXPLAIN of a SELECT and simple forms of SHOW are run"
WORD = r"[A-Za-z_][A-Za-z0-9_]{0,63}"
SHOW = {
    "postgresql": re.compile(rf"SHOW {WORD}(\.{WORD})?", re.IGNORECASE),
    "mysql": re.compile(
        r"SHOW ((GLOBAL |SESSION )?(STATUS|VARIABLES)|(FULL )?(TABLES|PROCESSLIST)|DATABASES|TABLE STATUS|ENGINES|"
        rf"ENGINE INNODB STATUS|((FULL )?COLUMNS|INDEX) FROM {WORD}|CREATE TABLE {WORD}|WARNINGS)"
        r"( LIKE '[A-Za-z0-9_%]*')?",
        re.IGNORECASE,
    ),
}
"""Whole statements; nothing within them can be quoted, so there is nothing to misread. SQLite has none."""


class _MySql(MySQL):
    """MySQL and MariaDB alike, which has no `REGEXP_LIKE`."""

    class Generator(MySQLGenerator):
        TRANSFORMS = {  # noqa: RUF012 -- as sqlglot declares it
            **MySQLGenerator.TRANSFORMS,
            exp.RegexpLike: lambda self, node: self.binary(node, "RLIKE"),
        }


DIALECTS: dict[Engine, str | type[Dialect]] = {"sqlite": "sqlite", "postgresql": "postgres", "mysql": _MySql}


@dataclass(frozen=True, slots=True)
class Checked:
    """A statement that may run."""

    sql: str
    """As it runs: no comments, and a limit of rows where it can have one."""
    is_select: bool


def check(sql: str, engine: Engine) -> Checked:
    """The statement, ready to run; `QueryRefused` says what is against it."""
    if "\0" in sql:
        raise QueryRefused("a statement holds no zero byte")
    text = " ".join(sql.split()).removesuffix(";").rstrip()
    if (shape := SHOW.get(engine)) and shape.fullmatch(text):
        return Checked(text, is_select=False)
    explain = EXPLAIN.match(sql)
    if not (explain or READS.match(sql)):
        # What the parser does not know it would log.
        raise QueryRefused(ONLY)
    try:
        statements = sqlglot.parse(sql[explain.end() :] if explain else sql, read=DIALECTS[engine])
        if len(statements) != 1:
            raise QueryRefused(f"one statement at a time, not {len(statements)}")
        tree = statements[0]
        if not isinstance(tree, exp.Select | exp.SetOperation):
            raise QueryRefused(ONLY)
        for problem in _problems(tree):
            raise QueryRefused(problem)
        _limit_rows(tree)
        written = tree.sql(DIALECTS[engine], comments=False, unsupported_level=ErrorLevel.RAISE)
    except (SqlglotError, ValueError) as error:
        # The first line says where; colours are for terminals.
        reason = re.sub(r"\x1b\[\d*m", "", str(error)).split("\n")[0][:200]
        raise QueryRefused(f"this is no statement that can be read as {engine}: {reason}") from None
    except RecursionError:
        raise QueryRefused("the statement is nested too deeply") from None
    if explain is None:
        return Checked(written, is_select=True)
    return Checked(f"EXPLAIN {'QUERY PLAN ' if engine == 'sqlite' else ''}{written}", is_select=False)


def _problems(tree: exp.Expr) -> Iterator[str]:
    for node in tree.walk():
        kind = type(node).__name__
        if isinstance(node, exp.Anonymous):
            if node.name.lower() not in FUNCTIONS_BY_NAME:
                yield f"the function {node.name[:64]} is not on the list of those that may be called"
        elif isinstance(node, exp.Func):
            if kind not in FUNCTIONS:
                yield f"the function {node.sql_name()[:64]} is not on the list of those that may be called"
        elif kind not in NODES:
            yield f"{kind} is not on the list of what a statement may hold"
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
            yield "a function is called by its plain name, without a schema"
        if isinstance(node, exp.Table) and (node.name.lower(), node.db.lower()) in SECRET_TABLES:
            yield f"{node.name} holds credentials"


def _limit_rows(tree: exp.Expr) -> None:
    """One row more than is shown, so that a cut is noticed; a smaller limit stays."""
    limit = tree.args.get("limit")
    if limit is not None:
        given = limit.expression if isinstance(limit, exp.Limit) else None
        if not (isinstance(given, exp.Literal) and given.name.isdecimal()):
            raise QueryRefused("LIMIT takes a plain number")
        if int(given.name) <= SQL_ROWS_MAX:
            return
    tree.set("limit", exp.Limit(expression=exp.Literal.number(SQL_ROWS_MAX + 1)))
