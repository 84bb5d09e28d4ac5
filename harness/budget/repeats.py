"""How often the same tool was called with the same arguments, so that a loop of an agent can be stopped (SPEC H4)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from harness.content import encode_content

MAX_CALLS_REMEMBERED = 4096
"""Distinct calls of one run or scope whose number is known; beyond it, the one not made for longest is forgotten."""


class Call:
    """A tool and its arguments, the same in whatever order these are named."""

    __slots__ = ("_args", "_key", "tool")

    def __init__(self, tool: str, args: Mapping[str, Any]) -> None:
        self.tool = tool
        self._args = args
        self._key: tuple[str, bytes] | None = None

    @property
    def key(self) -> tuple[str, bytes]:
        """The tool and the fingerprint of its arguments, made where a limit asks for it."""
        if self._key is None:
            names = sorted(self._args, key=repr)
            self._key = self.tool, encode_content({name: self._args[name] for name in names}).fingerprint
        return self._key


class Repeats:
    """Counts of distinct calls; use them with the run's lock held."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: OrderedDict[tuple[str, bytes], int] = OrderedDict()

    def of(self, key: tuple[str, bytes]) -> int:
        """How often the call with this key was made, as far as is remembered."""
        return self._counts.get(key, 0)

    def add(self, key: tuple[str, bytes]) -> None:
        self._counts[key] = self._counts.get(key, 0) + 1
        self._counts.move_to_end(key)
        if len(self._counts) > MAX_CALLS_REMEMBERED:
            self._counts.popitem(last=False)
