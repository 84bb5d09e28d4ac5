"""Codes of the record in plain words. A code that is not listed here is shown in lower case, never guessed at."""

from urllib.parse import unquote

from ledger.words.format import count, duration, money, size

_FAILURES = {
    "TRANSPORT": "connection failed",
    "TIMEOUT": "no answer in time",
    "PROVIDER_ERROR": "the provider failed",
    "MALFORMED_REPLY": "unreadable reply",
    "INVALID_ARGUMENTS": "bad arguments",
    "RATE_LIMITED": "rate limited",
    "REJECTED_REQUEST": "the provider rejected the request",
    "CANCELLED": "cancelled",
    "DEADLINE_EXCEEDED": "stopped at the deadline",
    "RUN_ENDED": "the run had ended",
    "SCOPE_ENDED": "its scope had ended",
    "DENIED": "denied by a policy",
    "HIDDEN_RETRY": "stopped for a hidden retry",
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
    "deadline_us": "Time",
    "model_calls": "Model calls",
    "tool_calls": "Tool calls",
    "input_tokens": "Input tokens",
    "output_tokens": "Output tokens",
    "total_tokens": "Total tokens",
    "run_bytes": "Run bytes",
    "cost_micros": "Cost",
    "repeated_calls": "Repeated calls",
}
_ORDER = (
    "model_calls",
    "tool_calls",
    "tool:",
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cost_micros",
    "run_bytes",
)
_NAMED = {"tool:": "{}", "repeat:": "the same {} call"}
"""Resources of one tool, which keeps its name."""


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


def noun(key: str) -> str:
    """The same inside a sentence: `model calls`, `query_logs`, `the same query_logs call`."""
    for prefix, words in _NAMED.items():
        if key.startswith(prefix):
            return words.format(key.removeprefix(prefix))
    return resource(key).lower()


def rank(key: str) -> tuple[int, str]:
    """Sorts resources into the order in which they are told: calls, each tool, tokens, cost, bytes, and any other."""
    known = "tool:" if key.startswith("tool:") else key
    return (_ORDER.index(known) if known in _ORDER else len(_ORDER), key)


def amount(key: str, number: int) -> str:
    """How much of a resource, with its unit where the resource's name does not say it."""
    if key == "run_bytes":
        return size(number)
    if key == "deadline_us":
        return duration(number)
    return money(number) if key == "cost_micros" else count(number)


def counted(key: str, number: int) -> str:
    """`3 model calls`, `1 tool call`, `417 bytes`: an amount in a sentence, with what it is of."""
    if key == "run_bytes":
        return size(number)
    words = noun(key)
    return f"{amount(key, number)} {words.removesuffix('s') if number == 1 and not key.startswith('tool:') else words}"


def used_of(key: str, used: int, limit: int, *, named: bool = True) -> str:
    """`model calls: 8 of 8 used`."""
    share = f"{amount(key, used)} of {amount(key, limit)} used"
    return f"{noun(key)}: {share}" if named else share


def scope_of(boundary: str) -> tuple[str, ...]:
    """The scope path of a boundary: all segments but kind, name, ordinal and attempt (SPEC D7)."""
    return tuple(unquote(segment) for segment in boundary.split("/")[:-4])
