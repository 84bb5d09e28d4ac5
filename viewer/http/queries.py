"""What a request asks for, checked: ids, page limits and positions. `InvalidInput` names the field and the problem."""

from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.requests import Request

from harness.errors import InvalidInput
from harness.ids import check_id
from ledger.errors import InvalidCursor
from viewer.words import N_

POSITION_MAX = 2**53 - 1
SESSION_PREFIX = "sessionPrefix"


@dataclass(frozen=True, slots=True)
class PageSize:
    """How many rows a page of some list has, unless another number is asked for, and how many it may have."""

    default: int
    most: int


@dataclass(frozen=True, slots=True)
class Window:
    """How far an overview looks back."""

    name: str
    hours: int | None
    """None looks at all there is."""
    words: str

    def since_us(self, now_us: int) -> int:
        """When it begins, in microseconds since 1970."""
        return 0 if self.hours is None else max(now_us - self.hours * 3_600_000_000, 0)


WINDOWS = (
    Window("1h", 1, N_("within the last hour")),
    Window("24h", 24, N_("within 24 hours")),
    Window("7d", 168, N_("within 7 days")),
    Window("all", None, N_("in all")),
)
WINDOW_DEFAULT = "24h"

RUNS = PageSize(default=50, most=200)
ROWS = PageSize(default=100, most=200)
"""Steps and tool invocations, each with its contents."""
EVENTS = PageSize(default=200, most=1_000)


def session_in_path(request: Request) -> str:
    """The `sessionId` of the path."""
    return check_id("sessionId", request.path_params["sessionId"])


def run_in_path(request: Request) -> str:
    """The `runId` of the path."""
    return check_id("runId", request.path_params["runId"])


def position_in_path(request: Request, name: str) -> int:
    """A whole number from 0 in the path."""
    number = _whole(request.path_params[name])
    if not 0 <= number <= POSITION_MAX:
        raise InvalidInput(name, "must be a whole number from 0")
    return number


def id_in_query(request: Request, name: str) -> str:
    """A required id; missing, blank, unsafe and ambiguous ones are refused, none is inferred (SPEC R4)."""
    value = single(request, name)
    if value is None:
        raise InvalidInput(name, "is required")
    return check_id(name, value)


def run_in_query(request: Request, session: str = "sessionId", run: str = "runId") -> tuple[str, str]:
    """A run and its session, by the names of their parameters."""
    return id_in_query(request, session), id_in_query(request, run)


def session_prefix(request: Request) -> str | None:
    """How the ids of the sessions begin that a list is of; for whoever is limited to some, the guard has set it.

    Left empty, as a form sends it, it is of all.
    """
    prefix = single(request, SESSION_PREFIX)
    return check_id(SESSION_PREFIX, prefix) if prefix else None


def limit_in_query(request: Request, size: PageSize = RUNS) -> int:
    """How many rows to list."""
    limit = _number(request, "limit")
    if limit is None:
        return size.default
    if not 1 <= limit <= size.most:
        raise InvalidInput("limit", f"must be a whole number from 1 to {size.most}")
    return limit


def cursor_in_query(request: Request) -> str | None:
    """Where the list goes on; only the ledger knows what a cursor means."""
    return single(request, "cursor")


def number_cursor(request: Request) -> int:
    """Where a list goes on whose rows are numbered from 1: after the number; 0 is the beginning."""
    number = _number(request, "cursor")
    if number is not None and not 0 <= number <= POSITION_MAX:
        raise InvalidCursor(single(request, "cursor") or "")
    return number or 0


def next_page(request: Request, limit: int, cursor: str | int) -> dict[str, str]:
    """The header that leads to the next page of the same list."""
    kept = [(name, value) for name, value in request.query_params.multi_items() if name not in ("limit", "cursor")]
    query = urlencode([*kept, ("limit", limit), ("cursor", cursor)])
    return {"Link": f'<{request.url.path}?{query}>; rel="next"'}


def window_in_query(request: Request) -> Window:
    """How far to look back."""
    name = single(request, "window") or WINDOW_DEFAULT
    window = next((each for each in WINDOWS if each.name == name), None)
    if window is None:
        raise InvalidInput("window", f"must be one of {', '.join(each.name for each in WINDOWS)}")
    return window


def position(request: Request, name: str) -> int | None:
    """A whole number from 0, or None where it is not given."""
    number = _number(request, name)
    if number is not None and not 0 <= number <= POSITION_MAX:
        raise InvalidInput(name, "must be a whole number from 0")
    return number


def _number(request: Request, name: str) -> int | None:
    value = single(request, name)
    return None if value is None else _whole(value)


def _whole(value: str) -> int:
    """The digits as a number; -1 for whatever is none."""
    return int(value) if value.isascii() and value.isdigit() and len(value) <= 16 else -1


def single(request: Request, name: str) -> str | None:
    """A parameter that may be given once."""
    values = request.query_params.getlist(name)
    if len(values) > 1:
        raise InvalidInput(name, "must be given once")
    return values[0] if values else None
