"""A piece of content as a block on a page: a JSON tree, a window of text, or the reason why there is neither."""

from collections.abc import Sequence
from dataclasses import dataclass

from ledger.records import ContentView, ToolInvocation
from ledger.words.codes import plain
from ledger.words.format import count, size
from ledger.words.text import shorten
from viewer.present import json_tree
from viewer.present.sentence import Moment, Sentence, sentence
from viewer.present.shapes import DiffLine, Table, diff, table
from viewer.present.text import WINDOW_SIZE_BYTES, Window, window
from viewer.words import gettext as _

PEEK_CHARS_MAX = 96
SAID_CHARS_MAX = 480
PEEK_WINDOW_SIZE_BYTES = 2_048
"""How much of a content is on the page before somebody asks for it."""
PEEK_TREE_SIZE_BYTES = 16_384
PEEK_NODES_MAX = 120
_ARGUMENT_CHARS_MAX = 28


@dataclass(frozen=True, slots=True)
class Block:
    """What a page shows of one content."""

    key: str
    """Names the content in the page's address, such as `tool-3-output`."""
    tree: json_tree.Node | None = None
    table: Table | None = None
    """In the place of the tree, where it is a list of flat objects."""
    window: Window | None = None
    diff: Sequence[DiffLine] | None = None
    """The window's lines, where it is of a unified diff."""
    missing: Sentence | None = None
    """Why there is nothing to show."""
    showing: str = ""
    """`Showing bytes N–M of T`, or the size alone where everything is shown."""


def block(key: str, content: ContentView | None, *, asked_for: bool = False, start: int = 0) -> Block | None:
    """The block for `content`, longer when it was `asked_for`; None where the run has no such content."""
    if content is None:
        return None
    if content.data is None:
        why = sentence(_("%(why)s: %(size)s."), why=_why_missing(content), size=size(content.size_bytes))
        return Block(key, missing=why)
    if content.data == b"":
        return Block(key, missing=[_("Empty.")])
    size_max = json_tree.SIZE_MAX_BYTES if asked_for else PEEK_TREE_SIZE_BYTES
    if "json" in content.media_type and start == 0 and len(content.data) <= size_max:
        tree = json_tree.parse(content.data, nodes_max=json_tree.NODES_MAX if asked_for else PEEK_NODES_MAX)
        if tree is not None and tree.kind in ("object", "array"):
            rows = table(json_tree.parse(content.data) or tree) if tree.kind == "array" else None
            return Block(key, tree=tree, table=rows, showing=size(content.size_bytes))
    shown = window(content.data, start, WINDOW_SIZE_BYTES if asked_for else PEEK_WINDOW_SIZE_BYTES)
    return Block(key, window=shown, diff=diff(shown.text, content.media_type), showing=showing(shown))


def _why_missing(content: ContentView) -> Sentence:
    erasure = content.erasure
    if content.state == "erased" and erasure is not None:
        said = _("Erased by %(who)s on %(time)s (%(why)s)") if erasure.actor else _("Erased on %(time)s (%(why)s)")
        return sentence(said, who=erasure.actor or "", time=Moment(erasure.erased_us), why=plain(erasure.reason))
    if content.state == "erased":
        return [_("Erased")]
    return [_("Damaged") if content.state == "damaged" else _("Only its digest was kept")]


def showing(shown: Window) -> str:
    """How much of the whole the window is."""
    if shown.whole:
        return size(shown.size_bytes)
    first, last, total = count(shown.start + 1), count(shown.end), count(shown.size_bytes)
    return _("Showing bytes %(first)s–%(last)s of %(total)s", first=first, last=last, total=total)


def said(content: ContentView | None) -> str | Sentence:
    """The beginning of what a model or a tool said, or why it cannot be read."""
    if content is None:
        return ""
    return _why_missing(content) if content.data is None else reply(content, SAID_CHARS_MAX)


def reply(content: ContentView | None, chars_max: int = PEEK_CHARS_MAX) -> str:
    """A model's reply on one line: what it says, or which tools it calls; any other content as `peek` has it."""
    if content is None or content.data is None or "json" not in content.media_type:
        return peek(content, chars_max)
    tree = json_tree.parse(content.data)
    members = {node.key: node for node in tree.children} if tree is not None and tree.kind == "object" else {}
    text = next((members[key].text for key in ("content", "text") if key in members and members[key].text), "")
    if text and text != "null":
        return shorten(text, chars_max)
    calls = members["tool_calls"].children if "tool_calls" in members else ()
    names = [child.text for call in calls for child in call.children if child.key == "name"]
    return shorten(_("calls %(tools)s", tools=", ".join(names)), chars_max) if names else peek(content, chars_max)


def peek(content: ContentView | None, chars_max: int = PEEK_CHARS_MAX) -> str:
    """The content's first words on one line."""
    if content is None:
        return ""
    if content.data is None:
        return content.state.replace("_", " ")
    return shorten(content.data[: chars_max * 4].decode("utf-8", "replace"), chars_max)


def arguments(tool: ToolInvocation) -> str:
    """A tool's arguments in a few words: the two that say most, words before numbers."""
    if tool.input is None or tool.input.data is None:
        return ""
    tree = json_tree.parse(tool.input.data)
    values = [(node.kind == "number", _value(node)) for node in tree.children] if tree else []
    told = [value for _is_number, value in sorted(values, key=lambda value: value[0]) if value]
    return " · ".join(shorten(value, _ARGUMENT_CHARS_MAX) for value in told[:2])


def _value(node: json_tree.Node) -> str:
    if node.kind == "array":
        return ", ".join(child.text for child in node.children[:6] if child.kind in ("string", "number"))
    return node.text if node.kind in ("string", "number") else ""
