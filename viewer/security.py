"""The outermost layer: which host names are answered, and the headers that keep content inert.

A page in a browser can reach a server on loopback under a name of its own choosing (DNS rebinding); its requests then
carry that name as `Host`, so a server on loopback answers only to loopback's names.
"""

from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from viewer import wrapper

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)

HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    # Kept, but asked about each time: after an upgrade nobody sees new pages in old colours.
    "Cache-Control": "no-cache",
}


class SecurityMiddleware:
    """Checks the host, then adds `HEADERS` to every answer that does not set them itself."""

    def __init__(self, app: ASGIApp, allowed_hosts: Iterable[str] = LOOPBACK_HOSTS) -> None:
        self.app = app
        self.allowed_hosts = frozenset(host.lower() for host in allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if self._allows(Headers(scope=scope).get("host", "")):
            await self.app(scope, receive, send_with_headers)
        else:
            refusal = wrapper.error("invalid_host", "this server does not answer to that host name", 400)
            await refusal(scope, receive, send_with_headers)

    def _allows(self, host: str) -> bool:
        return "*" in self.allowed_hosts or host_name(host) in self.allowed_hosts


def host_name(host: str) -> str:
    """A `Host` header without its port, in lower case."""
    name, _, port = host.rpartition(":")
    return (name if name and port.isdigit() else host).lower()
