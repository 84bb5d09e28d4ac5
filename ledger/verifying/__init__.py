"""Whether a ledger is what its events say: links, columns, contents and rows, checked against each other (SPEC E9)."""

from ledger.verifying.findings import Finding, Tail, VerifyReport
from ledger.verifying.run_check import RunCheck
from ledger.verifying.sharing import cores
from ledger.verifying.verify import verify, verify_run

__all__ = ["Finding", "RunCheck", "Tail", "VerifyReport", "cores", "verify", "verify_run"]
