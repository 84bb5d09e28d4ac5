"""The ledger's commands of `tachograph`, as tests call them."""

from ledger.cli.backup import backup, erasures, restore
from ledger.cli.cancel import cancel
from ledger.cli.checkpoint import checkpoint
from ledger.cli.copy import copy
from ledger.cli.doctor import doctor
from ledger.cli.erase import erase, retention
from ledger.cli.export import export
from ledger.cli.key import key
from ledger.cli.maintain import migrate, rebuild
from ledger.cli.read import runs, show
from ledger.cli.system import system
from ledger.cli.token import token
from ledger.cli.verify import verify
from ledger.cli.verify_bundle import verify_bundle

__all__ = [
    "backup",
    "cancel",
    "checkpoint",
    "copy",
    "doctor",
    "erase",
    "erasures",
    "export",
    "key",
    "migrate",
    "rebuild",
    "restore",
    "retention",
    "runs",
    "show",
    "system",
    "token",
    "verify",
    "verify_bundle",
]
