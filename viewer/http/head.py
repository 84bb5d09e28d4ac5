"""How much a request may say before its body: bounds on its address and on its headers, each with an answer."""

from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from viewer.http import wrapper

ADDRESS_BYTES_MAX: Final = 8 * 1024
"""Path and query; a longer one gets 414."""
HEADERS_MAX: Final = 100
HEADERS_BYTES_MAX: Final = 16 * 1024
"""Names and values together; more, or more headers, get 431."""


class BoundedHead:
    """Refuses a request whose head is out of proportion, or which a proxy may have taken to end elsewhere."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self.app
        if scope["type"] == "http":
            address_bytes = len(scope.get("raw_path") or scope["path"].encode()) + len(scope["query_string"])
            headers_bytes = sum(len(name) + len(value) for name, value in scope["headers"])
            names = {name for name, _ in scope["headers"]}
            if names >= {b"content-length", b"transfer-encoding"}:
                told = "the length of the body is told in two ways"
                app = wrapper.error("malformed_request", told, 400, headers={"Connection": "close"})
            elif address_bytes > ADDRESS_BYTES_MAX:
                app = wrapper.error("address_too_long", f"the address is longer than {ADDRESS_BYTES_MAX} bytes", 414)
            elif len(scope["headers"]) > HEADERS_MAX or headers_bytes > HEADERS_BYTES_MAX:
                told = f"there are more than {HEADERS_MAX} headers, or {HEADERS_BYTES_MAX} bytes of them"
                app = wrapper.error("headers_too_large", told, 431)
        await app(scope, receive, send)
