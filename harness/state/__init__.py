"""One fold for everyone: what a run's events add up to.

The live harness decides on this state, the ledger projects and verifies with it; so the arithmetic of budgets and
the rules of what may follow what exist once. `evolve` is pure: it never changes the state it is given. `advance` is
the same step without the copy, for who adds up many events; `evolve_all` takes one for those of one append.
"""

from harness.state.charges import ESTIMATES, charge, reserved_in
from harness.state.fold import advance, begin, evolve, evolve_all
from harness.state.records import (
    NOTHING,
    OBSERVED,
    RUNNING,
    Evolving,
    OpenAttempt,
    Refusal,
    Reservation,
    RunState,
    ScopeState,
    observed_in,
    path_of,
)

__all__ = [
    "ESTIMATES",
    "NOTHING",
    "OBSERVED",
    "RUNNING",
    "Evolving",
    "OpenAttempt",
    "Refusal",
    "Reservation",
    "RunState",
    "ScopeState",
    "advance",
    "begin",
    "charge",
    "evolve",
    "evolve_all",
    "observed_in",
    "path_of",
    "reserved_in",
]
