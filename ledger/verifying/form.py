"""Each body has the one form that its event has: canonical JSON, of texts with the characters that they may have (D9).

It is matched by one pattern for each type of event, made of the vocabulary. Bytes of another form could be read in two
ways, such as by which of two equal keys counts; no event of ours has them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import orjson

from harness.events import EVENT_TYPES, Event, parse_event
from ledger.bytes import body_of

MAPS = ("labels", "limits", "usage")
INTEGER = "(?:0|-?[1-9][0-9]*)"
PRINTABLE, UNESCAPED = "[ -~]", r"[ !#-\[\]-~]"
"""What a name may have, and what of that stands for itself in JSON."""


class Form(NamedTuple):
    """Of the bodies of one type of event."""

    pattern: re.Pattern[bytes]
    maps: tuple[str, ...]
    """Fields whose keys have an order, of which the pattern knows nothing."""

    def is_that_of(self, event: Event, body: bytes) -> bool:
        """Whether the body has it, of which `event` was read; False for some that have it, if they hold escapes."""
        if self.pattern.fullmatch(body) is None:
            return False
        return not self.maps or all(_is_in(body, name, getattr(event, name)) for name in self.maps)


def check_form(event: Event, body: bytes) -> None:
    """`ValueError` if the body, of which `event` was read, has not the form of such an event."""
    # A quotation mark or a backslash in a name is no fault.
    if not form_of(event.type).is_that_of(event, body) and body_of(parse_event(orjson.loads(body))) != body:
        raise ValueError(f"the body is not canonical JSON of {event.type}")


@cache
def form_of(event_type: str) -> Form:
    """The form of an event of that type."""
    model = EVENT_TYPES[event_type]
    hints = get_type_hints(model, include_extras=True)
    pattern = r"\{"
    for name, field in sorted(model.model_fields.items()):
        must_be = field.is_required() or name in ("type", "version")
        pattern += f'(?:"{name}":{_form(hints[name])}[,}}]){"" if must_be else "?"}'
    return Form(re.compile(pattern.encode()), tuple(name for name in MAPS if name in model.model_fields))


def _is_in(body: bytes, name: str, entries: Mapping[str, int | str] | None) -> bool:
    """Whether the map is in the body as its canonical JSON."""
    return entries is None or b'"%b":%b' % (name.encode(), orjson.dumps(entries, option=orjson.OPT_SORT_KEYS)) in body


def _form(hint: Any) -> str:
    """The pattern of a value."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        texts = [limit.pattern for each in inner[1:] for limit in each.metadata if hasattr(limit, "pattern")]
        return f'"{texts[0][1:-1].replace(PRINTABLE, UNESCAPED)}"' if texts else _form(inner[0])
    if origin is Mapping:
        return rf"\{{(?:\}}|(?:{_form(inner[0])}:{_form(inner[1])}[,}}])+)"
    if origin is Literal:
        return f"(?:{'|'.join(re.escape(orjson.dumps(value).decode()) for value in inner)})"
    if hint in (int, bool):
        return INTEGER if hint is int else "(?:true|false)"
    (known,) = (each for each in inner if each is not type(None))
    return _form(known)
