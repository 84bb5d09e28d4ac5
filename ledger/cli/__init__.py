"""The ledger's commands of `tachograph`."""

from ledger.cli.erase import erase, retention
from ledger.cli.maintain import migrate, rebuild
from ledger.cli.read import runs, show
from ledger.cli.system import system
from ledger.cli.verify import verify

__all__ = ["erase", "migrate", "rebuild", "retention", "runs", "show", "system", "verify"]
