"""Hostile text made visible: control and direction characters become marks, and one line is no longer than it may be.

They move the cursor, hide text or turn its direction, which escaping for HTML leaves alone (CASES 46).
"""

import re

UNSAFE = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and line feed, delete, C1
    "\u00ad\u061c\u180e\u200b\u200e\u200f"  # soft hyphen, direction marks, zero-width space
    "\u2028-\u202e\u2060-\u206f"  # separators, embeddings and overrides, invisible operators, isolates
    "\ufeff\ufff9-\ufffb"  # byte order mark, interlinear annotations
    "\ud800-\udfff"  # surrogates, which no encoder accepts
    "\U000e0000-\U000e0fff"  # tags and further variation selectors: text that nobody sees
    "]"
)

# fmt: off
_CONTROLS = (
    "NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL", "BS", "TAB", "LF", "VT", "FF", "CR", "SO", "SI",
    "DLE", "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM", "SUB", "ESC", "FS", "GS", "RS", "US",
)
# fmt: on


def visible(text: str) -> str:
    """The text with each character that could hide or turn it replaced by a mark that names it."""
    if text.isascii() and text.isprintable():  # as most are, and to see it is quicker than to search
        return text
    return UNSAFE.sub(lambda found: mark(found[0]), text)


def shorten(text: str, length_max: int) -> str:
    """One visible line of at most `length_max` characters, an ellipsis where it was cut."""
    line = " ".join(visible(text[: length_max * 4]).split())
    return line if len(line) <= length_max and len(text) <= length_max * 4 else line[: length_max - 1].rstrip() + "…"


def one_line(text: str | None, width: int) -> str:
    """Text of a run on one line of a terminal: nothing in it can move the cursor."""
    if text is None:
        return "-"
    line = "".join(char if char.isprintable() else " " for char in " ".join(text.split()))
    return line if len(line) <= width else f"{line[: width - 1]}…"


def first_line(error: BaseException) -> str:
    """What an error says, without the lines below, in which some go on about it."""
    return str(error).partition("\n")[0]


def mark(character: str) -> str:
    """What stands for such a character: `‹ESC›`, `‹U+202E›`."""
    point = ord(character)
    name = _CONTROLS[point] if point < 0x20 else "DEL" if point == 0x7F else f"U+{point:04X}"
    return f"‹{name}›"
