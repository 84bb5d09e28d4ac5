"""What the harness raises: one base, facts as attributes, a `code` that never changes."""

from __future__ import annotations


class HarnessError(Exception):
    """Base of every error that the harness raises on purpose."""

    code = "harness_error"


class InvalidInput(HarnessError, ValueError):
    """An id, limit, name, time-out or other argument is not acceptable; nothing was made or written."""

    code = "invalid_input"

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"{field} {problem}")


class UnpricedModel(InvalidInput):
    """A model step was refused before anything was reserved, because its cost could not be known (SPEC H4)."""

    code = "unpriced_model"

    def __init__(self, model: str | None, *, version: str) -> None:
        self.model = model
        self.version = version
        named = "is missing, and" if model is None else f"{model!r}"
        super().__init__("model", f"{named} has no price in table {version}, which refuses such steps")


class IllegalEvent(HarnessError):
    """An event that cannot follow the events already in its run, such as an end without a start (SPEC E6)."""

    code = "illegal_event"

    def __init__(self, event_type: str, problem: str) -> None:
        self.event_type = event_type
        self.problem = problem
        super().__init__(f"{event_type} cannot be recorded: {problem}")


class UnknownEvent(HarnessError, LookupError):
    """An event of a type, or of a version of it, that a newer program wrote: kept, and passed over by folds."""

    code = "unknown_event"

    def __init__(self, event_type: str, version: object) -> None:
        self.event_type = event_type
        self.version = version
        super().__init__(f"event type {event_type} in version {version} is not known here")


class RunEnded(HarnessError):
    """Work was refused, because the run has ended or because this very work would have passed one of its limits.

    Of a limit, `used` is what was used of `resource` before the refused work: less than `limit` where that is larger
    than what was left, more where a model had used more than was known beforehand.
    """

    def __init__(
        self,
        session_id: str,
        run_id: str,
        *,
        outcome: str,
        reason: str,
        resource: str | None = None,
        used: int | None = None,
        limit: int | None = None,
    ) -> None:
        self.session_id = session_id
        self.run_id = run_id
        self.outcome = outcome
        self.reason = reason
        self.resource = resource
        self.used = used
        self.limit = limit
        why = "" if reason == outcome else f" ({reason})"
        over = "" if resource is None else f": {resource} {used} of {limit} used before the refused work"
        super().__init__(f"run {session_id}/{run_id} ended {outcome}{why}{over}")

    @property
    def code(self) -> str:  # type: ignore[override]
        """The outcome in lower case, such as `budget_exhausted`; `ledger_unavailable` where that was the reason."""
        return "ledger_unavailable" if self.reason == "LEDGER_UNAVAILABLE" else self.outcome.lower()


class ScopeExhausted(HarnessError):
    """Work was refused, because a nested scope has passed one of its limits; the run goes on without it (SPEC D5)."""

    code = "scope_exhausted"

    def __init__(self, session_id: str, run_id: str, *, scope: str, resource: str, used: int, limit: int) -> None:
        self.session_id = session_id
        self.run_id = run_id
        self.scope = scope
        self.resource = resource
        self.used = used
        self.limit = limit
        super().__init__(
            f"{scope} of run {session_id}/{run_id} is exhausted: "
            f"{resource} {used} of {limit} used before the refused work"
        )


class ScopeNotOpen(HarnessError):
    """Work was refused, because its nested scope has been left; the run goes on (SPEC D5)."""

    code = "scope_not_open"

    def __init__(self, session_id: str, run_id: str, *, scope: str) -> None:
        self.session_id = session_id
        self.run_id = run_id
        self.scope = scope
        super().__init__(f"{scope} of run {session_id}/{run_id} has been left: what follows its `with` uses the run")


class AttemptTimedOut(HarnessError, TimeoutError):
    """An attempt took longer than its call allowed; the run goes on (CASES 20)."""

    code = "attempt_timed_out"

    def __init__(self, name: str, *, timeout_s: float) -> None:
        self.name = name
        self.timeout_s = timeout_s
        super().__init__(f"{name} was stopped at its time-out of {timeout_s:g} s")


class LedgerUnavailable(HarnessError):
    """The record of a boundary could not be made durable, so the work was not let through (SPEC E3, D1)."""

    code = "ledger_unavailable"

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"the ledger did not record the boundary: {problem}")


class TerminationNotRecorded(HarnessError):
    """The block was left, but its outcome could not be made durable in `close_timeout_s` (SPEC D1)."""

    code = "termination_not_recorded"

    def __init__(self, session_id: str, run_id: str, *, outcome: str, problem: str) -> None:
        self.session_id = session_id
        self.run_id = run_id
        self.outcome = outcome
        self.problem = problem
        super().__init__(f"run {session_id}/{run_id} ended {outcome}, but its end is not recorded: {problem}")


class AlreadyTerminated(HarnessError):
    """Someone else recorded this run's end first; that record is the outcome (SPEC D1, E6)."""

    code = "already_terminated"

    def __init__(self, run_id: str, *, outcome: str, reason: str) -> None:
        self.run_id = run_id
        self.outcome = outcome
        self.reason = reason
        super().__init__(f"run {run_id} was already ended {outcome} ({reason})")


class CapacityExceeded(HarnessError):
    """A byte reservation would pass the run's limit; usage stays as it was (SPEC H9)."""

    code = "capacity_exceeded"

    def __init__(self, *, amount_bytes: int, used_bytes: int, limit_bytes: int) -> None:
        self.amount_bytes = amount_bytes
        self.used_bytes = used_bytes
        self.limit_bytes = limit_bytes
        super().__init__(f"{amount_bytes} bytes more would pass the run's limit: {used_bytes} of {limit_bytes} used")


class HiddenRetriesEnabled(HarnessError, ValueError):
    """A client would retry on its own, unrecorded; `setting` turns that off (SPEC H7)."""

    code = "hidden_retries_enabled"

    def __init__(self, client: str, setting: str) -> None:
        self.client = client
        self.setting = setting
        super().__init__(f"{client} retries on its own: build it with {setting}")


class ToolDenied(HarnessError):
    """A policy denied a tool call: nothing of it was charged or invoked, and the run goes on."""

    code = "tool_denied"

    def __init__(
        self, session_id: str, run_id: str, *, tool: str, call_id: str | None, policy: str, reason: str
    ) -> None:
        self.session_id = session_id
        self.run_id = run_id
        self.tool = tool
        self.call_id = call_id
        self.policy = policy
        self.reason = reason
        super().__init__(f"run {session_id}/{run_id}: policy {policy} denied tool {tool} ({reason})")


class RunningLoop(HarnessError, RuntimeError):
    """Waiting here would keep an event loop from turning: there, use `Harness` and `await`."""

    code = "running_loop"

    def __init__(self) -> None:
        super().__init__("SyncHarness must not wait on the thread of a running event loop: use Harness there")


class HarnessClosed(HarnessError, RuntimeError):
    """The harness was closed, so no further run can begin."""

    code = "harness_closed"

    def __init__(self) -> None:
        super().__init__("the harness was closed: no further run can begin")


class OtherProcess(HarnessError, RuntimeError):
    """The harness belongs to the process that first used it; a fork has none of its threads."""

    code = "other_process"

    def __init__(self) -> None:
        super().__init__("the harness was used before this process was forked: make one for each process")


class UnknownClient(HarnessError, ValueError):
    """It is not known whether a client retries on its own, so it is refused (SPEC H7)."""

    code = "unknown_client"

    def __init__(self, client: str) -> None:
        self.client = client
        super().__init__(
            f"it is not known whether {client} retries on its own: say how to tell, "
            f"with declared=[Declared({client}, count_retries=..., setting=...)]"
        )
