"""Where the demo keeps things and which model it asks: from the command line and the environment, in one place."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from demo.bounds import CHAT_LIMITS, CHAT_TIMEOUT_S, MODEL_TIMEOUT_S
from demo.errors import DemoError
from demo.offline_model import MODEL_NAME
from harness import Limits
from ledger.audit.keyring import default_key_path
from ledger.store.place import path_of

NO_KEY = "none"
"""Sent where no key is set: servers on this machine ask for none."""


class BadSetting(DemoError):
    """A setting that cannot be used as it is."""

    code = "bad_setting"


@dataclass(frozen=True, slots=True)
class Provider:
    """An OpenAI-compatible endpoint and one of its models."""

    base_url: str
    api_key: str = field(repr=False)
    model: str


@dataclass(frozen=True, slots=True)
class Settings:
    """What the app is opened with."""

    data_folder: Path
    log_folder: Path
    db_url: str
    provider: Provider
    metrics_snapshot: Path | None = None
    """Figures to look at instead of this machine's own."""
    redis_url: str | None = field(default=None, repr=False)
    """Where conversations are kept instead of a file; may hold a password."""
    prometheus_url: str | None = field(default=None, repr=False)
    """May hold a password."""
    limits: Limits = CHAT_LIMITS
    timeout_s: float = CHAT_TIMEOUT_S
    model_timeout_s: float = MODEL_TIMEOUT_S

    @property
    def memory_path(self) -> Path:
        return self.data_folder / "memory.db"

    @property
    def key_path(self) -> Path:
        """Where the ledger's commands look for it, too."""
        return default_key_path(path_of(self.db_url))


def ledger_url(data_folder: Path, given: str | None, environ: Mapping[str, str] = os.environ) -> str:
    """The ledger that is named on the command line, else by TACHOGRAPH_DB, else the one in the data folder."""
    return given or environ.get("TACHOGRAPH_DB") or f"sqlite:///{(data_folder / 'runs.db').absolute()}"


def provider_from(environ: Mapping[str, str] = os.environ) -> Provider | None:
    """The provider that the environment names; None for the offline model.

    A key alone changes nothing: this machine's logs go to another one only where OPENAI_BASE_URL says so.
    """
    base_url = environ.get("OPENAI_BASE_URL")
    if not base_url:
        return None
    model = environ.get("OPENAI_MODEL")
    if not model:
        raise BadSetting("OPENAI_BASE_URL is set; set OPENAI_MODEL to one of its models, too")
    key = environ.get("OPENAI_API_KEY") or NO_KEY
    if not (key.isascii() and key.isprintable()):
        raise BadSetting("OPENAI_API_KEY holds a character that no header can carry")
    return Provider(_checked("OPENAI_BASE_URL", base_url, "https://api.example.com/v1"), key, model)


def prometheus_from(environ: Mapping[str, str] = os.environ) -> str | None:
    """The Prometheus that PROMETHEUS_URL names, if it does."""
    url = environ.get("PROMETHEUS_URL")
    return _checked("PROMETHEUS_URL", url, "http://127.0.0.1:9090") if url else None


def _checked(name: str, address: str, example: str) -> str:
    try:
        url = urlsplit(address)
        usable = url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise BadSetting(f"{name} is {address!r}, which is no address like {example}")
    return address


def offline_provider(url: str) -> Provider:
    """The bundled model at the address where it is served."""
    return Provider(f"{url}/v1", NO_KEY, MODEL_NAME)
