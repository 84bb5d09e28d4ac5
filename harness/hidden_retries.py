"""Clients that retry on their own are refused: what they send a second time, no record would show (SPEC H7).

A client is known by the module and the name of its type and of that type's bases, so no SDK is imported here. What
clients hold inside (an HTTP client, its transports, the model within a chain) is looked at too. What is not known is
refused as well, unless the application declares how its retries are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from harness.client_readers import PACKAGES, READERS, Inside, Reader, known_names, name_of
from harness.errors import HiddenRetriesEnabled, UnknownClient

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Declared:
    """How clients of a type that is not known here tell of their own retries."""

    type: type[Any]
    count_retries: Callable[[Any], int]
    """How many requests more than one a client may send for one call; 0 is none."""
    setting: str
    """What turns them off, as one would write it."""


def refuse_hidden_retries(client: C, *, declared: Iterable[Declared] = ()) -> C:
    """`client` itself, if nothing in it sends a request more than once.

    `HiddenRetriesEnabled` names the setting that turns its retries off; `UnknownClient` is raised where the type is
    neither known here nor `declared`, or does not look as it is known to. Retries that are asked for at a single call
    are not seen here, but at the wire (`harness.adapters.wire`).
    """
    _Search(tuple(declared)).look_at(client)
    return client


class _Search:
    """One look through a client and all that it holds."""

    def __init__(self, declared: tuple[Declared, ...]) -> None:
        self._declared = declared
        self._seen: list[object] = []

    def look_at(self, client: object) -> None:
        if any(client is seen for seen in self._seen):
            return
        self._seen.append(client)
        name = name_of(client)
        reader = self._reader_of(client)
        if reader is None:
            raise UnknownClient(name)
        try:
            found = list(reader(client))
        except (AttributeError, KeyError, TypeError) as error:
            raise UnknownClient(name) from error
        for one in found:
            if isinstance(one, str):
                raise HiddenRetriesEnabled(name, one)
            self.look_at(one.client)

    def _reader_of(self, client: object) -> Reader | None:
        kinds = type(client).__mro__
        is_known = True
        for at, known_as in enumerate(known_names(client)):
            for declared in self._declared:
                if declared.type is kinds[at]:
                    return partial(_declared, declared)
            if known_as in READERS:
                return READERS[known_as] if is_known else None
            is_known = is_known and (known_as[0] in PACKAGES or not _replaces(kinds[at], kinds[at + 1 :]))
        return None


def _replaces(kind: type, behind: tuple[type, ...]) -> bool:
    """Whether a type of somebody else's does anything in another way than those behind it, such as sending."""
    methods = {name for name, value in vars(kind).items() if hasattr(value, "__get__")} - _MAKING
    return any(name in vars(each) for each in behind if each is not object for name in methods)


_MAKING = frozenset({"__init__", "__new__", "__dict__", "__weakref__", "__init_subclass__", "__class_getitem__"})
"""What says how a client is made, which shows in what it is."""


def _declared(declared: Declared, client: Any) -> Iterator[str | Inside]:
    if declared.count_retries(client) != 0:
        yield declared.setting
