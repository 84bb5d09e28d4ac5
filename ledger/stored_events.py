"""Stored bodies as the events they are, for a fraction of what checking all of their fields costs.

An event is checked in full when it is made, and the bytes of it are hashed and linked. Read again, its body is decoded
straight into a record with the same fields: which there must be, which there may be, of what kinds and in what range.
What the characters of a text may be is not asked again here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from functools import cache, reduce
from operator import or_
from types import NoneType
from typing import Annotated, Any, Literal, cast, get_args, get_origin, get_type_hints

import msgspec
import orjson

from harness.errors import UnknownEvent
from harness.events import EVENT_TYPES, Event, parse_event

CONTENT_NAMES = ("answer", "comment", "error", "input", "output", "query", "rationale")
"""What events name contents of their stream as: by digest (`input_digest`); some say whether it is stored
(`input_stored`), and its size (`input_bytes`)."""


def events_of(bodies: Iterable[bytes]) -> list[Event]:
    """What can be read of the bodies as of events: their fields, but nothing else that models can do.

    Types and versions that are not known here are passed over; `ValueError` for what is no event.
    """
    decode = _decoder().decode
    events: list[Event] = []
    for body in bodies:
        try:
            events.append(cast(Event, decode(body)))
        except (msgspec.DecodeError, RecursionError):
            with contextlib.suppress(UnknownEvent):
                events.append(_checked(body))
    return events


def _checked(body: bytes) -> Event:
    """What is no event at first sight, checked in full, which says what is wrong, or that it is merely unknown."""
    fields = orjson.loads(body)
    if not isinstance(fields, dict):
        raise ValueError("a body is a JSON object")
    return parse_event(fields)


@cache
def _decoder() -> msgspec.json.Decoder[msgspec.Struct]:
    """Made once it is needed."""
    return msgspec.json.Decoder(
        reduce(or_, (_record_of(event_type, model) for event_type, model in EVENT_TYPES.items()))
    )


def _record_of(event_type: str, model: type[Event]) -> type[msgspec.Struct]:
    """A record with the fields of the model."""
    kinds = get_type_hints(model, include_extras=True)
    fields: list[Any] = []
    for name, field in model.model_fields.items():
        if name != "type":
            must_be = field.is_required() or name == "version"
            kind = _kind_of(kinds[name])
            fields.append((name, kind) if must_be else (name, kind, field.default))
    return msgspec.defstruct(
        model.__name__,
        fields,
        tag_field="type",
        tag=event_type,
        namespace={"type": event_type},
        forbid_unknown_fields=True,
        frozen=True,
        gc=False,
        kw_only=True,
    )


def _kind_of(hint: Any) -> Any:
    """The field's type with its range, as the decoder says it."""
    if get_origin(hint) is Annotated:
        kind, *others = get_args(hint)
        bounds = {
            bound: getattr(limit, bound)
            for other in others
            for limit in getattr(other, "metadata", ())
            for bound in ("ge", "le", "max_length")
            if hasattr(limit, bound)
        }
        return Annotated[_kind_of(kind), msgspec.Meta(**bounds)] if bounds else _kind_of(kind)
    if get_origin(hint) is Mapping:
        return dict[tuple(map(_kind_of, get_args(hint)))]  # type: ignore[misc]
    if get_origin(hint) is Literal or hint in (bool, int, str, NoneType):
        return hint
    return reduce(or_, map(_kind_of, get_args(hint)))
