"""Content that is easier to read in another shape: a list of flat objects as a table, a unified diff as lines.

Nothing is left out or put in: what does not fit the shape exactly is shown as the tree or the text that it is.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from viewer.present.json_tree import Node

TABLE_COLUMNS_MAX = 12
TABLE_ROWS_MIN = 2
DIFF_TYPES = ("text/x-diff", "text/x-patch")
_DIFF_HEAD = re.compile(r"(?:^|\n)--- [^\n]*\n\+\+\+ [^\n]*\n@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")
_SNIFFED_CHARS = 4_096
"""How far in a text it is looked for where a diff begins."""

LineKind = Literal["added", "removed", "place", "same"]


@dataclass(frozen=True, slots=True)
class Table:
    """Flat objects, one a row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Node | None, ...], ...]
    """None where an object has no such member, which is not the same as null."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a diff, with the sign that it begins with."""

    kind: LineKind
    text: str


def table(tree: Node) -> Table | None:
    """The table that a list of flat objects is; None for anything else."""
    rows = tree.children
    if tree.kind != "array" or len(rows) < TABLE_ROWS_MIN or not all(_is_flat(row) for row in rows):
        return None
    columns = tuple(dict.fromkeys(_name(cell) for row in rows for cell in row.children))
    if not 0 < len(columns) <= TABLE_COLUMNS_MAX:
        return None
    by_name = [{_name(cell): cell for cell in row.children} for row in rows]
    return Table(columns, tuple(tuple(row.get(column) for column in columns) for row in by_name))


def diff(text: str, media_type: str) -> Sequence[DiffLine] | None:
    """The lines of a unified diff; None for any other text."""
    is_said = media_type.partition(";")[0].strip().lower() in DIFF_TYPES
    if not is_said and not (media_type.startswith("text/") and _DIFF_HEAD.search(text[:_SNIFFED_CHARS])):
        return None
    return [DiffLine(_kind(line), line) for line in text.split("\n")]


def _is_flat(row: Node) -> bool:
    """Whether it is an object of scalars, in which no name stands twice."""
    names = [_name(cell) for cell in row.children]
    scalars = all(cell.kind in ("string", "number", "word") for cell in row.children)
    return row.kind == "object" and scalars and len(set(names)) == len(names)


def _name(cell: Node) -> str:
    return cell.key or ""


def _kind(line: str) -> LineKind:
    if line.startswith(("+++ ", "--- ", "@@ ", "diff ", "index ")):
        return "place"
    return "added" if line.startswith("+") else "removed" if line.startswith("-") else "same"
