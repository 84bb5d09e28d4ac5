"""What the app is opened with, and which model it asks."""

from dataclasses import dataclass, field
from pathlib import Path

from demo.bounds import ACTIVE_RUNS_MAX, CHAT_LIMITS, CHAT_TIMEOUT_S, MODEL_TIMEOUT_S
from demo.configuration import Configuration
from demo.offline_model import MODEL_NAME
from harness import Limits
from ledger.audit.signing.keyring import default_key_path
from ledger.store.place import path_of

NO_KEY = "none"
"""Sent where no key is set: servers on this machine ask for none."""


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
    sql_url: str | None = field(default=None, repr=False)
    """A database that may be asked; may hold one, too."""
    limits: Limits = CHAT_LIMITS
    timeout_s: float = CHAT_TIMEOUT_S
    model_timeout_s: float = MODEL_TIMEOUT_S
    active_runs_max: int = ACTIVE_RUNS_MAX

    @property
    def memory_path(self) -> Path:
        return self.data_folder / "memory.db"

    @property
    def key_path(self) -> Path:
        """Where the ledger's commands look for it, too."""
        return default_key_path(path_of(self.db_url))


def settings_of(given: Configuration, provider: Provider) -> Settings:
    """What is set, as the app is opened with it."""
    return Settings(
        given["data"],
        given["logs"],
        ledger_url(given["data"], given["db"]),
        provider,
        redis_url=given["redis_url"],
        prometheus_url=given["prometheus_url"],
        active_runs_max=given["active_runs_max"],
        sql_url=given["sql_url"],
        timeout_s=given["run_timeout_s"],
        model_timeout_s=given["model_timeout_s"],
    )


def ledger_url(data_folder: Path, given: str | None = None) -> str:
    """The ledger that is named, else the one in the data folder."""
    return given or f"sqlite:///{(data_folder / 'runs.db').absolute()}"


def provider_of(given: Configuration) -> Provider | None:
    """The provider that is named; None for the offline model.

    A key alone changes nothing: this machine's logs go to another one only where the base URL says so.
    """
    if given["openai_base_url"] is None:
        return None
    return Provider(given["openai_base_url"], given["openai_api_key"] or NO_KEY, given["openai_model"])


def offline_provider(url: str) -> Provider:
    """The bundled model at the address where it is served."""
    return Provider(f"{url}/v1", NO_KEY, MODEL_NAME)
