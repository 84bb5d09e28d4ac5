"""Hostile text made visible and inert: control and direction characters become marks, long text a window.

Escaping for HTML is the template engine's job; this module takes care of what escaping leaves alone: characters
that move the cursor, hide text or turn its direction, and text too long for a page (CASES 46).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from ledger.words.format import day_time, instant
from ledger.words.text import UNSAFE, mark, visible
from viewer.present.sentence import Moment, Part

WINDOW_SIZE_BYTES = 8_192
"""How much of one piece of content a page shows at once."""

_CODE = re.compile("`([^`\n]+)`")


def visible_markup(text: str) -> Markup:
    """The same as HTML, with the marks told apart from characters that merely look like them."""
    if text.isascii() and text.isprintable():
        return escape(text)
    out: list[Markup] = []
    at = 0
    for found in UNSAFE.finditer(text):
        out.append(escape(text[at : found.start()]))
        code = f"U+{ord(found[0]):04X}"
        out.append(Markup('<span class="mark" title="{}">{}</span>').format(code, mark(found[0])))
        at = found.end()
    out.append(escape(text[at:]))
    return Markup("").join(out)


def prose(text: str) -> Markup:
    """The same for a text that people wrote: what stands between backticks is code. Everything stays inert."""
    parts = enumerate(_CODE.split(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(visible_markup(p)) if n % 2 else visible_markup(p) for n, p in parts
    )


def apart(name: str) -> Markup:
    """A name within a sentence, which turns no word beside it."""
    return Markup("<bdi>{}</bdi>").format(visible(name))


def moment(at_us: int) -> Markup:
    """A point in time in UTC, beside which a script puts the reader's own."""
    return Markup('<time datetime="{}"><span>{}</span></time>').format(instant(at_us), day_time(at_us))


def told(said: str | Sequence[Part | Moment | str]) -> Markup:
    """A sentence of ours: the names in it set apart, its times as `moment` has them."""
    return Markup("").join(map(_told, [said] if isinstance(said, str) else said))


def _told(part: str | Part | Moment) -> Markup:
    if isinstance(part, Moment):
        return moment(part.at_us)
    if isinstance(part, str):
        return escape(visible(part))
    text = visible(part.text)
    return Markup("<code><bdi>{}</bdi></code>").format(text) if part.code else escape(text)


def breakable(name: str) -> Markup:
    """A name that breaks after its underscores rather than inside a word."""
    return Markup("<wbr>").join(visible_markup(part) for part in re.split("(?<=_)", name))


def row_count(text: str, columns: int) -> int:
    """About how many rows the text takes in so many columns."""
    return sum(1 + len(line) // columns for line in text.split("\n"))


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of content, and where it lies in the whole."""

    text: str
    start: int
    end: int
    """First and behind-last byte shown."""
    size_bytes: int
    previous_start: int | None
    next_start: int | None

    @property
    def whole(self) -> bool:
        """Whether everything is shown."""
        return self.start == 0 and self.end == self.size_bytes


def window(data: bytes, start: int = 0, length_bytes: int = WINDOW_SIZE_BYTES) -> Window:
    """The window of about `length_bytes`, at least 4, that begins at `start`; it cuts no UTF-8 character in two."""
    begin = _boundary(data, min(max(start, 0), len(data)))
    end = len(data) if len(data) - begin <= length_bytes else _boundary(data, begin + length_bytes)
    return Window(
        text=data[begin:end].decode("utf-8", "replace"),
        start=begin,
        end=end,
        size_bytes=len(data),
        previous_start=max(0, begin - length_bytes) if begin else None,
        next_start=end if end < len(data) else None,
    )


def _boundary(data: bytes, at: int) -> int:
    """The start of the character that `at` lies in; bytes that are no UTF-8 are left where they are."""
    if at >= len(data) or data[at] & 0xC0 != 0x80:
        return at
    for back in range(1, min(4, at + 1)):
        byte = data[at - back]
        if byte & 0xC0 != 0x80:
            length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return at - back if length > back else at
    return at
