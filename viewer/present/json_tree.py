"""JSON as a tree that shows every value exactly as it was written, bounded in size and depth.

Numbers keep their digits and duplicate keys stay duplicate: a viewer of evidence must not tidy it up.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ledger.words.format import count
from ledger.words.text import UNSAFE
from viewer.words import gettext as _
from viewer.words import ngettext

NODES_MAX = 400
DEPTH_MAX = 24
SIZE_MAX_BYTES = 131_072
"""Above it the text is shown by window instead of as a tree."""
OPEN_DEPTH = 2
"""Levels shown open; deeper ones start closed."""


@dataclass(frozen=True, slots=True)
class Node:
    """One value in its place."""

    key: str | None
    """The member's name or the element's index; None at the root."""
    kind: str
    """object, array, string, number, word (true, false, null) or cut."""
    text: str
    """The scalar as written, or what a collection holds in words."""
    children: tuple["Node", ...]
    open: bool

    @property
    def exact_key(self) -> str | None:
        """The key as JSON in ASCII, where it cannot be shown as it is and yet is to be copied so."""
        return json.dumps(self.key) if self.key is not None and UNSAFE.search(self.key) else None

    @property
    def exact_text(self) -> str | None:
        """The same of a string."""
        return json.dumps(self.text) if self.kind == "string" and UNSAFE.search(self.text) else None

    @property
    def unnamed(self) -> "Node":
        """The same value without its key, for a place that shows the key itself."""
        return replace(self, key=None)


class _Number(str):
    """A number's own digits."""

    __slots__ = ()


class _Members(list[tuple[str, object]]):
    """An object's members in their order, duplicates included."""

    __slots__ = ()


_EXACT = json.JSONDecoder(object_pairs_hook=_Members, parse_int=_Number, parse_float=_Number, parse_constant=_Number)


def parse(data: bytes, *, nodes_max: int = NODES_MAX, open_depth: int = OPEN_DEPTH) -> Node | None:
    """The tree, or None where the bytes are no JSON, too big or too deep to be shown as one."""
    if len(data) > SIZE_MAX_BYTES:
        return None
    try:
        return of(_EXACT.decode(data.decode("utf-8")), nodes_max=nodes_max, open_depth=open_depth)
    except (ValueError, RecursionError):
        return None


def of(value: object, *, nodes_max: int = NODES_MAX, open_depth: int = OPEN_DEPTH) -> Node:
    """The tree of an already parsed value, at most `nodes_max` values of it."""
    return _node(None, value, 0, iter(range(nodes_max)), open_depth)


def _node(key: str | None, value: object, depth: int, budget: Iterator[int], open_depth: int) -> Node:
    members = _members(value)
    if members is None:
        kind, text = _scalar(value)
        return Node(key, kind, text, (), False)
    kind = "array" if isinstance(value, (list, tuple)) and not isinstance(value, _Members) else "object"
    if kind == "array":
        label = ngettext("%(num)s item", "%(num)s items", len(members))
    else:
        label = ngettext("%(num)s member", "%(num)s members", len(members))
    if depth >= DEPTH_MAX:
        cut = _("%(held)s, not shown: nested deeper than %(levels)s levels", held=label, levels=DEPTH_MAX)
        return Node(key, "cut", cut, (), False)
    children: list[Node] = []
    for name, child in members:
        if next(budget, None) is None:
            cut = _("showing %(shown)s of %(held)s", shown=count(len(children)), held=label)
            children.append(Node(None, "cut", cut, (), False))
            break
        children.append(_node(name, child, depth + 1, budget, open_depth))
    return Node(key, kind, label, tuple(children), depth < open_depth)


def _members(value: object) -> list[tuple[str, object]] | None:
    if isinstance(value, _Members):
        return value
    if isinstance(value, (list, tuple)):
        return [(str(index), child) for index, child in enumerate(value)]
    if isinstance(value, Mapping):
        return [(str(name), child) for name, child in value.items()]
    return None


def _scalar(value: object) -> tuple[str, str]:
    if isinstance(value, _Number) or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return "number", str(value)
    if isinstance(value, str):
        return "string", value
    return "word", json.dumps(value, default=str)
