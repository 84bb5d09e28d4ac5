"""What a request asks for, checked: ids, page limits and positions. `InvalidInput` names the field and the problem."""

from starlette.requests import Request

from harness.errors import InvalidInput
from harness.ids import check_id

RUNS_LIMIT_DEFAULT = 50
RUNS_LIMIT_MAX = 200
POSITION_MAX = 2**53 - 1


def session_in_path(request: Request) -> str:
    """The `sessionId` of the path."""
    return check_id("sessionId", request.path_params["sessionId"])


def run_in_path(request: Request) -> str:
    """The `runId` of the path."""
    return check_id("runId", request.path_params["runId"])


def id_in_query(request: Request, name: str) -> str:
    """A required id; missing, blank, unsafe and ambiguous ones are refused, none is inferred (SPEC R4)."""
    value = single(request, name)
    if value is None:
        raise InvalidInput(name, "is required")
    return check_id(name, value)


def limit_in_query(request: Request) -> int:
    """How many runs to list."""
    limit = _number(request, "limit")
    if limit is None:
        return RUNS_LIMIT_DEFAULT
    if not 1 <= limit <= RUNS_LIMIT_MAX:
        raise InvalidInput("limit", f"must be a whole number from 1 to {RUNS_LIMIT_MAX}")
    return limit


def cursor_in_query(request: Request) -> str | None:
    """Where the list goes on; only the ledger knows what a cursor means."""
    return single(request, "cursor")


def position(request: Request, name: str) -> int | None:
    """A whole number from 0, or None where it is not given."""
    number = _number(request, name)
    if number is not None and not 0 <= number <= POSITION_MAX:
        raise InvalidInput(name, "must be a whole number from 0")
    return number


def _number(request: Request, name: str) -> int | None:
    """The digits of a parameter as a number; -1 for whatever is none."""
    value = single(request, name)
    if value is None:
        return None
    return int(value) if value.isascii() and value.isdigit() and len(value) <= 16 else -1


def single(request: Request, name: str) -> str | None:
    """A parameter that may be given once."""
    values = request.query_params.getlist(name)
    if len(values) > 1:
        raise InvalidInput(name, "must be given once")
    return values[0] if values else None
