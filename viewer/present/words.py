"""Codes of the record in plain words. A code that is not listed here is shown in lower case, never guessed at."""

from urllib.parse import unquote

_FAILURES = {
    "TRANSPORT": "connection failed",
    "TIMEOUT": "no answer in time",
    "PROVIDER_ERROR": "the provider failed",
    "MALFORMED_REPLY": "unreadable reply",
    "INVALID_ARGUMENTS": "bad arguments",
    "RATE_LIMITED": "rate limited",
    "DEADLINE_EXCEEDED": "stopped at the deadline",
    "UNKNOWN": "failed",
}
_CANCELS = {
    "CLIENT_DISCONNECTED": "the client went away",
    "USER_REQUESTED": "someone asked for it to stop",
    "DEADLINE_EXCEEDED": "its time was up",
    "BUDGET_EXHAUSTED": "its budget was used up",
    "TASK_CANCELLED": "the program cancelled its task",
    "SHUTDOWN": "the program was shutting down",
    "LEDGER_UNAVAILABLE": "the ledger could not be written",
}
_RESOURCES = {
    "time": "Time",
    "model_calls": "Model calls",
    "tool_calls": "Tool calls",
    "input_tokens": "Input tokens",
    "output_tokens": "Output tokens",
    "total_tokens": "Total tokens",
    "run_bytes": "Run bytes",
}


def plain(code: str) -> str:
    """`NO_EVIDENCE` as `no evidence`."""
    return code.replace("_", " ").lower()


def failure(code: str) -> str:
    """Why an attempt failed."""
    return _FAILURES.get(code, plain(code))


def cancel(code: str) -> str:
    """Why a run was cancelled, as the end of `Cancelled because ...`."""
    return _CANCELS.get(code, f"of {plain(code)}")


def resource(key: str) -> str:
    """A limited resource as a label; a tool's own limit is labelled with the tool's name."""
    return key.removeprefix("tool:") if key.startswith("tool:") else _RESOURCES.get(key, plain(key).capitalize())


def scope_of(boundary: str) -> tuple[str, ...]:
    """The scope path of a boundary: all segments but kind, name, ordinal and attempt (SPEC D7)."""
    return tuple(unquote(segment) for segment in boundary.split("/")[:-4])
