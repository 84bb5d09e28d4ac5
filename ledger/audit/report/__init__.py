"""What happened in a period, in figures: of the runs that started in it, and of what was decided about the ledger.

Nothing in it is free text, so that whoever keeps a report keeps nothing that would have to be erased (SPEC E10).
"""

from ledger.audit.report.gathering import read_report
from ledger.audit.report.records import Figures, Key, LatestCheckpoint, Report, RunLine, Wanted
from ledger.audit.report.sampling import Sample
from ledger.audit.report.sheet import Sheet

__all__ = ["Figures", "Key", "LatestCheckpoint", "Report", "RunLine", "Sample", "Sheet", "Wanted", "read_report"]
