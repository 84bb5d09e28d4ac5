"""The one place that says where log records go, and what they may hold: never the words of an exception or a payload.

What was recorded of a run is content, and only the ledger keeps it. An exception may quote it, so of an exception its
type and the places in the code are logged; and libraries below, which log what passes through them, stay at warnings.
"""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

OURS = ("harness", "ledger", "viewer", "demo")
"""Loggers that the level is for."""
LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")
Format = Literal["text", "json"]
FRAMES_MAX = 12


def configure_logs(log_format: Format, log_level: str, stream: TextIO | None = None) -> None:
    """Send all records to the error stream, or to `stream`, one line each."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines())
    root = logging.getLogger()
    for other in list(root.handlers):
        root.removeHandler(other)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    for name in OURS:
        logging.getLogger(name).setLevel(log_level.upper())


class TextLines(logging.Formatter):
    """For people."""

    def format(self, record: logging.LogRecord) -> str:
        said = "".join(char if char.isprintable() else "?" for char in " ".join(record.getMessage().split()))
        line = f"{_when(record)} {record.levelname.lower()} {record.name}: {said}"
        failed = _failed(record)
        return line if failed is None else f"{line} [{failed['type']} at {' < '.join(failed['places'])}]"


class JsonLines(logging.Formatter):
    """For programs: one object a line."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": _when(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
            "thread": record.threadName,
        }
        failed = _failed(record)
        return json.dumps(fields if failed is None else fields | {"exception": failed})


def _when(record: logging.LogRecord) -> str:
    return f"{datetime.fromtimestamp(record.created, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def _failed(record: logging.LogRecord) -> dict[str, Any] | None:
    """What the exception was and where it came from, innermost first; not what it says."""
    error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    if error is None:
        return None
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES_MAX:]
    places = [f"{frame.name} {frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in reversed(frames)]
    return {"type": type(error).__name__, "places": places}
