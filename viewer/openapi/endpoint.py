"""`GET /api/openapi.json`: the description of the very routes that are served."""

from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import version

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from viewer.access.routes import GuardedRoute
from viewer.http.describing import Described
from viewer.openapi.document import MEDIA_TYPE, document_of

PATH = "/api/openapi.json"


class OpenApi:
    """The description, made when it is first asked for."""

    def __init__(self, routes: Sequence[BaseRoute], root_path: str) -> None:
        self._described = [*routes, *self.routes]
        self._root_path = root_path

    @property
    def routes(self) -> list[GuardedRoute]:
        about = "The description of the API, as OpenAPI 3.1."
        return [
            GuardedRoute(PATH, self.openapi, needs=None, described=Described(other_forms={MEDIA_TYPE: about})),
        ]

    async def openapi(self, request: Request) -> Response:
        """This description."""
        return Response(self._document, media_type=MEDIA_TYPE)

    @cached_property
    def _document(self) -> bytes:
        routes = [route for route in self._described if isinstance(route, GuardedRoute)]
        return orjson.dumps(document_of(routes, version=version("tachograph"), root_path=self._root_path))
