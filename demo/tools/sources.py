"""Where the tools look: given when the app is opened, and never chosen by a model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from demo.databases import Engine, engine_of
from demo.tools.cases import Cases
from harness import SystemWallClock
from harness.clock import WallClock
from ledger.records import UsefulCase

BUNDLED_RUNBOOKS = Path(__file__).parent.parent / "runbooks"
PROMETHEUS_LABEL = "prometheus"
DATABASE_LABEL = "database"
CASES_LABEL = "cases"
CONFIGURED = "configured"


class _NoCases:
    """Stands for a case library in a run that is executed again, in which no tool is called."""

    async def cases(self, limit: int = 1) -> list[UsefulCase]:
        return []


@dataclass(frozen=True, slots=True)
class Sources:
    """The places, and the clock; a tool whose place is not configured is not offered."""

    log_folder: Path
    runbook_folder: Path = BUNDLED_RUNBOOKS
    metrics_snapshot: Path | None = None
    """Figures of a machine at one moment, as a file; None for this machine, now."""
    prometheus_url: str | None = field(default=None, repr=False)
    """May hold a password."""
    sql_url: str | None = field(default=None, repr=False)
    """So may this."""
    cases: Cases | None = field(default=None, repr=False)
    """Where earlier cases are read, if they are."""
    clock: WallClock = field(default_factory=SystemWallClock)

    @property
    def labels(self) -> dict[str, str]:
        """What is configured, for the record of a run: which tools its model was offered follows from it."""
        labels = {} if self.prometheus_url is None else {PROMETHEUS_LABEL: CONFIGURED}
        labels |= {} if self.cases is None else {CASES_LABEL: CONFIGURED}
        return labels if self.sql_engine is None else labels | {DATABASE_LABEL: self.sql_engine}

    @property
    def sql_engine(self) -> Engine | None:
        """The kind of the database, if one is configured."""
        return None if self.sql_url is None else engine_of(self.sql_url)

    @classmethod
    def as_recorded(cls, labels: Mapping[str, str]) -> "Sources":
        """Sources with which a run is offered the tools that it was offered, but which lead nowhere."""
        return cls(
            Path(),
            prometheus_url="http://recorded.invalid" if PROMETHEUS_LABEL in labels else None,
            cases=_NoCases() if CASES_LABEL in labels else None,
            sql_url=f"{labels[DATABASE_LABEL]}://recorded.invalid" if DATABASE_LABEL in labels else None,
        )
