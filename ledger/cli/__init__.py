"""The ledger's commands of `tachograph`."""

from ledger.cli.maintain import migrate, rebuild
from ledger.cli.read import runs, show
from ledger.cli.system import system

__all__ = ["migrate", "rebuild", "runs", "show", "system"]
