"""Whether a ledger is what its events say: links, columns, contents and rows, checked against each other (SPEC E9)."""

from ledger.verifying.findings import Finding, VerifyReport
from ledger.verifying.verify import verify

__all__ = ["Finding", "VerifyReport", "verify"]
