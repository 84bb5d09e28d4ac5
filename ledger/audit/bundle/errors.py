"""What is raised of a file that is no bundle, and of one that does not hold what it claims."""

from __future__ import annotations

from typing import Literal

from ledger.errors import LedgerError

Problem = Literal[
    "checkpoint_differs",
    "content_differs",
    "content_missing",
    "count_differs",
    "event_malformed",
    "event_unreadable",
    "link_broken",
    "member_differs",
    "member_missing",
    "not_signed",
    "proof_differs",
    "root_differs",
    "row_differs",
    "sequence_gap",
    "stream_identity",
    "tree_differs",
]


class InvalidBundle(LedgerError, ValueError):
    """A file that is no bundle, is not written as bundles are, or is beyond what a bundle may hold."""

    code = "invalid_bundle"

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"the bundle {problem}")


class BundleWrong(LedgerError, ValueError):
    """The first thing in a bundle that is not as it claims."""

    code = "bundle_wrong"

    def __init__(self, problem: Problem, place: str, detail: str) -> None:
        self.problem = problem
        self.place = place
        self.detail = detail
        super().__init__(f"{place}: {detail} ({problem})")


class BundleTooLarge(LedgerError, ValueError):
    """More than a bundle may hold; nothing was made."""

    code = "bundle_too_large"

    def __init__(self, what: str, *, count: int, limit: int) -> None:
        self.what = what
        self.count = count
        self.limit = limit
        super().__init__(f"a bundle holds {limit:,} {what} at most, and this one would have {count:,}")
