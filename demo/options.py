"""What can be set: one table, from which the file, the environment, the command line and the help take their names."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from demo.bounds import ACTIVE_RUNS_LIMIT, ACTIVE_RUNS_MAX, CHAT_TIMEOUT_S, MODEL_TIMEOUT_S, TIMEOUT_S_MAX
from demo.databases import engine_of

PORT_MAX: Final = 65_535


def text(given: str) -> str:
    """Any text; what is to be one is checked where it is used."""
    return given


def folder(given: str) -> Path:
    """A folder that is there."""
    path = Path(given)
    if not path.is_dir():
        raise ValueError(f"there is no folder {given!r}")
    return path


def place(given: str) -> Path:
    """A folder that is there or can be made."""
    path = Path(given)
    if path.exists() and not path.is_dir():
        raise ValueError(f"{given!r} is no folder")
    return path


def whole_number(lowest: int, highest: int) -> Callable[[str], int]:
    """A whole number within bounds."""

    def check(given: str) -> int:
        if not (given.isascii() and given.isdigit() and len(given) <= 10 and lowest <= int(given) <= highest):
            raise ValueError(f"must be a whole number from {lowest} to {highest}")
        return int(given)

    return check


def seconds(given: str) -> float:
    """A time-out."""
    try:
        value = float(given)
    except ValueError:
        value = 0.0
    if not 0 < value <= TIMEOUT_S_MAX:
        raise ValueError(f"must be a number of seconds above 0 and at most {TIMEOUT_S_MAX:.0f}")
    return value


def header_text(given: str) -> str:
    """A key, which is sent in a header."""
    if not (given.isascii() and given.isprintable()):
        raise ValueError("holds a character that no header can carry")
    return given


def database(given: str) -> str:
    """An address of a database; what it is instead is not quoted, since a password may stand in it."""
    if engine_of(given) is None:
        raise ValueError("is no address like postgresql://USER@HOST/NAME, mysql://USER@HOST/NAME or sqlite:///FILE")
    return given


def address(*schemes: str, example: str) -> Callable[[str], str]:
    """An address of one of these schemes; what it is instead is not quoted, since a password may stand in it."""

    def check(given: str) -> str:
        try:
            url = urlsplit(given)
            usable = url.scheme in schemes and bool(url.hostname) and url.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise ValueError(f"is no address like {example}")
        return given

    return check


@dataclass(frozen=True, slots=True)
class Option:
    """One thing that can be set; its name is that of the key in the file."""

    name: str
    env: str
    parse: Callable[[str], Any]
    about: str
    default: str | None = None
    is_secret: bool = False
    """Shown nowhere, and no option of the command line, which every user of the machine can read."""

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"


OPTIONS: Final = (
    Option("logs", "TACHOGRAPH_LOGS", folder, "folder of log files to search", "/var/log"),
    Option("data", "TACHOGRAPH_DATA", place, "folder to keep things in", "data"),
    Option("db", "TACHOGRAPH_DB", text, "ledger to use; runs.db in the data folder if left out"),
    Option("port", "TACHOGRAPH_PORT", whole_number(0, PORT_MAX), "port of the app; 0 for a free one", "0"),
    Option(
        "redis_url",
        "REDIS_URL",
        address("redis", "rediss", example="redis://127.0.0.1:6379/0"),
        "Redis to keep conversations in; a file in the data folder if left out",
    ),
    Option(
        "prometheus_url",
        "PROMETHEUS_URL",
        address("http", "https", example="http://127.0.0.1:9090"),
        "Prometheus to ask for figures and alerts; none if left out",
    ),
    Option("sql_url", "DIAGNOSIS_SQL_URL", database, "database to ask by reading SQL; none if left out"),
    Option(
        "openai_base_url",
        "OPENAI_BASE_URL",
        address("http", "https", example="https://api.example.com/v1"),
        "OpenAI-compatible endpoint to ask; the offline model if left out",
    ),
    Option("openai_model", "OPENAI_MODEL", text, "one of its models"),
    Option("openai_api_key", "OPENAI_API_KEY", header_text, "its key", is_secret=True),
    Option(
        "active_runs_max",
        "TACHOGRAPH_ACTIVE_RUNS_MAX",
        whole_number(1, ACTIVE_RUNS_LIMIT),
        "chats and checks at once",
        f"{ACTIVE_RUNS_MAX}",
    ),
    Option("run_timeout_s", "TACHOGRAPH_RUN_TIMEOUT_S", seconds, "seconds a run may take", f"{CHAT_TIMEOUT_S:g}"),
    Option(
        "model_timeout_s",
        "TACHOGRAPH_MODEL_TIMEOUT_S",
        seconds,
        "seconds one reply of the model may take",
        f"{MODEL_TIMEOUT_S:g}",
    ),
)
