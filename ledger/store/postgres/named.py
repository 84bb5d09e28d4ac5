"""Statements that both engines run, with parameters by name: here they get the numbers that this database wants."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_NAMED = re.compile(r"(?<!:):([a-z_]+)")


def numbered(statement: str, values: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """The statement with `$1` for its first name, and the values in that order."""
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[1] not in names:
            names.append(match[1])
        return f"${names.index(match[1]) + 1}"

    return _NAMED.sub(number, statement), [values[name] for name in names]
