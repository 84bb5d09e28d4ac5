"""One stylesheet for every page, put together from the files of `static/css` when the server starts."""

import hashlib
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response

from viewer.access.routes import GuardedRoute

FIRST = ("tokens.css", "base.css", "parts.css")
"""The others build on these."""
PATH = "/style.css"


class Stylesheet:
    """All of it, and the name of what is in it, so that a browser may keep it for as long as it is the same."""

    def __init__(self) -> None:
        folder = files("viewer") / "static" / "css"
        found = dict(sorted(_sheets(folder, "")))
        order = [*FIRST, *(name for name in found if name not in FIRST)]
        self.text = "\n".join(found[name] for name in order)
        self.version = hashlib.sha256(self.text.encode()).hexdigest()[:12]

    @property
    def routes(self) -> list[GuardedRoute]:
        return [GuardedRoute(PATH, self.serve, needs=None)]

    async def serve(self, request: Request) -> Response:
        """The same for ever under the name of its version."""
        is_named = request.url.query == self.version
        kept = "public, max-age=31536000, immutable" if is_named else "no-cache"
        return Response(self.text, media_type="text/css", headers={"Cache-Control": kept})


def _sheets(folder: Traversable, prefix: str) -> list[tuple[str, str]]:
    found = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _sheets(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".css"):
            found.append((f"{prefix}{entry.name}", entry.read_text()))
    return found
