"""The sub-path that a reverse proxy serves the viewer at, whether the proxy takes it off the address or not.

Behind this layer a path always begins with the sub-path, and `root_path` says how much of it that is, as ASGI has it.
"""

import re
from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from harness.errors import InvalidInput

_SEGMENTS = re.compile(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+")
ROOT_PATH_LENGTH_MAX = 200


def check_root_path(root_path: str, own_paths: Iterable[str] = ()) -> str:
    """A sub-path such as `/ledger`, or the empty one; `own_paths` must not begin with its first segment.

    Else `/trace/trace` could be the trace page below `/trace`, or what a proxy left of a longer address.
    """
    if not root_path:
        return root_path
    if len(root_path) > ROOT_PATH_LENGTH_MAX or not _SEGMENTS.fullmatch(root_path):
        raise InvalidInput(
            "root path", "must look like /ledger or /tools/ledger: plain segments, and no slash at the end"
        )
    if _first_segment(root_path) in {_first_segment(path) for path in own_paths}:
        raise InvalidInput(
            "root path", f"must not begin with /{_first_segment(root_path)}, an address of the viewer's own"
        )
    return root_path


def path_below_root(scope: Scope) -> str:
    """The path of a request as the routes have it, without the sub-path."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


class BelowRootPath:
    """Puts every path below `root_path`; the sub-path itself, without its slash, is the home page too."""

    def __init__(self, app: ASGIApp, root_path: str) -> None:
        self.app = app
        self.root_path = root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self.root_path:
            if scope["path"] == self.root_path:
                scope["path"] += "/"
            elif not scope["path"].startswith(f"{self.root_path}/"):
                scope["path"] = self.root_path + scope["path"]
            scope["root_path"] = self.root_path
        await self.app(scope, receive, send)


def _first_segment(path: str) -> str:
    return path.lstrip("/").partition("/")[0]
