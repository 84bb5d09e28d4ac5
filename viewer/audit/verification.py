"""Verifications of the whole ledger, on request: one at a time, in a process of its own; the last report is kept."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from harness.clock import WallClock
from ledger.errors import LedgerError
from ledger.verifying import VerifyReport
from ledger.verifying.apart import VerificationFailed, verify_apart
from viewer.audit.source import LedgerAddress, NoAddress

log = logging.getLogger(__name__)

VERIFICATION_TIMEOUT_S = 3_600.0
"""A verification that takes longer is given up; `tachograph verify` has no such limit."""


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A verification that has not come to its end."""

    started_us: int
    done: int
    of: int
    """Events looked at, and about how many there are; 0 while that is not known."""


@dataclass(frozen=True, slots=True)
class Verified:
    """The last verification that came to an end."""

    started_us: int
    ended_us: int
    report: VerifyReport | None
    problem: str = ""
    """Why there is no report."""


class Verification:
    """The verifications of one server."""

    def __init__(self, address: LedgerAddress | None, clock: WallClock) -> None:
        self._address = address
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self.under_way: UnderWay | None = None
        self.last: Verified | None = None

    @property
    def is_possible(self) -> bool:
        """Whether the server knows where the ledger is."""
        return self._address is not None

    def start(self) -> bool:
        """Begin; False where one is under way already, which goes on. `NoAddress` where none is possible."""
        if self._address is None:
            raise NoAddress
        if self.under_way is not None:
            return False
        self.under_way = UnderWay(self._clock.now_us(), 0, 0)
        self._task = asyncio.create_task(self._verify(self._address, self.under_way.started_us))
        return True

    async def _verify(self, address: LedgerAddress, started_us: int) -> None:
        def heard(done: int, of: int) -> None:
            self.under_way = UnderWay(started_us, done, of)

        report, problem = None, ""
        try:
            async with asyncio.timeout(VERIFICATION_TIMEOUT_S):
                report = await verify_apart(address.url, heard)
        except TimeoutError:
            problem = f"it took longer than {VERIFICATION_TIMEOUT_S:,.0f} seconds and was given up"
        except VerificationFailed as error:
            problem = str(error)
        except (LedgerError, OSError) as error:
            log.warning("the ledger could not be verified: %s", type(error).__name__)
            problem = "the process that verifies could not be run"
        finally:
            self.under_way = None
        self.last = Verified(started_us, self._clock.now_us(), report, problem)
