"""What a route says of its endpoint, for the description of the API; the rest is read off the route and its types.

GuardedRoute(
    "/api/things/{sessionId}",
    self.things,  # the docstring's first line is the summary
    needs=Right.READ,
    described=Described(answer=list[Thing], query=paging(queries.RUNS, RUN_CURSOR), pages=True),
)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from ledger.reading.cursor import MAX_CURSOR_CHARS
from viewer.http.queries import POSITION_MAX, PageSize

Position = Annotated[int, Field(ge=0, le=POSITION_MAX)]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query, or a header that means something here."""

    name: str
    of: Any
    """Its type."""
    about: str
    required: bool = False
    place: Literal["query", "header"] = "query"


@dataclass(frozen=True, slots=True)
class Failure:
    """A way in which a request is refused or fails."""

    status: int
    code: str
    about: str
    data: Any = None
    """The type of the wrapper's `data`; else it is null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What an endpoint takes and gives.

    What follows from the route needs no word here: parameters of the path, what a body can be refused for, that a run
    is not found, that the caller has not the right.
    """

    answer: Any = None
    """The type of the wrapper's `data`; None where no answer has the wrapper."""
    status: int = 200
    query: tuple[Parameter, ...] = ()
    body: type[BaseModel] | None = None
    body_may_be_empty: bool = False
    failures: tuple[Failure, ...] = ()
    """Those that only this endpoint has."""
    has_tag: bool = False
    """Whether it has an `ETag`, and answers 304."""
    pages: bool = False
    """Whether `Link: rel="next"` leads to more."""
    headers: tuple[str, ...] = ()
    """Others that say something of the answer."""
    other_forms: Mapping[str, str] = field(default_factory=dict)
    """Media types of answers without the wrapper, and what they hold."""
    empty: Mapping[int, str] = field(default_factory=dict)
    """Statuses of answers without a body, and what they mean."""


RUN_CURSOR = Annotated[str, Field(min_length=1, max_length=MAX_CURSOR_CHARS)]
"""Of lists of runs, only what an earlier page gave."""


def paging(size: PageSize, cursor: Any = Position) -> tuple[Parameter, Parameter]:
    """The parameters of a list that is read page by page."""
    limit = Annotated[int, Field(ge=1, le=size.most)]
    return (
        Parameter("limit", limit, f"How many rows a page has; {size.default} unless another number is given."),
        Parameter("cursor", cursor, "Where the page begins, as the `next` link of the page before gives it."),
    )
