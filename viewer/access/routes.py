"""Routes that say what right they need; who asks without it is refused before the endpoint is called."""

from collections.abc import Awaitable, Callable, Collection
from enum import StrEnum

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


class Right(StrEnum):
    """What a token may be good for."""

    READ = "read"
    ANNOTATE = "annotate"
    CANCEL = "cancel"
    AUDIT = "audit"
    ERASE = "erase"


class GuardedRoute(Route):
    """A route with its rule; None needs no right, which only what shows nothing of any run may say."""

    def __init__(
        self,
        path: str,
        endpoint: Callable[[Request], Awaitable[Response]],
        *,
        needs: Right | None,
        shows_content: bool = False,
        methods: Collection[str] | None = None,
    ) -> None:
        super().__init__(path, endpoint, methods=methods)
        self.needs = needs
        self.shows_content = shows_content
        """Whether content of runs is in the answer, so that who saw it is on record."""
