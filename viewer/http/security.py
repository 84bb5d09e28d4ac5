"""Which host names are answered, and the headers that keep content inert.

A page in a browser can reach a server on loopback under a name of its own choosing (DNS rebinding); its requests then
carry that name as `Host`, so a server on loopback answers only to loopback's names. Where a named proxy forwards
another host, both have to be allowed: a page may write `X-Forwarded-Host`, but never `Host`. And any page may send a
request to loopback; what would change something is taken only from our own pages and from programs, which send no
`Origin`. Other pages may lead here, but load nothing from here into themselves: they could not read it, yet learn from
how long it takes, make the server work, and have it recorded that somebody looked.
"""

from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from viewer.http import wrapper
from viewer.http.forwarded import NAMED_HOST

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
ANY_HOST = "*"
"""Among the names that are answered: every name is one."""

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
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    # Kept, but asked about each time: after an upgrade nobody sees new pages in old colours.
    "Cache-Control": "no-cache",
}


READING = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing."""
OWN_SITES = frozenset({"same-origin", "none"})
"""What a browser says in `Sec-Fetch-Site` of a request of our own pages, and of one that its user made."""


class SecurityMiddleware:
    """Checks host and origin, then adds `HEADERS` to every answer that does not set them itself."""

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

        headers = Headers(scope=scope)
        app = self.app
        hosts = {headers.get("host", ""), scope.get(NAMED_HOST, headers.get("host", ""))}
        if not all(map(self._allows, hosts)):
            app = wrapper.error("invalid_host", "this server does not answer to that host name", 400)
        elif not (leads_here(headers) if scope["method"] in READING else is_same_origin(scope)):
            app = wrapper.error("foreign_origin", "this server takes requests from its own pages only", 403)
        await app(scope, receive, send_with_headers)

    def _allows(self, host: str) -> bool:
        return ANY_HOST in self.allowed_hosts or host_name(host) in self.allowed_hosts


def is_same_origin(scope: Scope) -> bool:
    """Whether a request is of a page of this very server, or of no page at all; other ports are other servers.

    Nor is a page that came without TLS one of a server that is reached with it. The other way round it may be: a proxy
    takes off the TLS, and unless it is a trusted one nothing says so.
    """
    headers = Headers(scope=scope)
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    scheme, _, host = (origin or "").lower().partition("://")
    is_own = host == headers.get("host", "").lower() and scheme in {scope["scheme"], "https"}
    return (origin is None or is_own) and (site is None or site in OWN_SITES)


def leads_here(headers: Headers) -> bool:
    """Whether what is to be read is asked for by our own pages, by somebody who follows a link, or by a program."""
    site = headers.get("sec-fetch-site")
    is_followed = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
    return site is None or site in OWN_SITES or is_followed


def comes_from_own_page(scope: Scope) -> bool:
    """Whether a request says that a page of this very server sent it; one that is silent about that does not."""
    headers = Headers(scope=scope)
    return is_same_origin(scope) and (headers.get("sec-fetch-site") == "same-origin" or "origin" in headers)


def host_name(host: str) -> str:
    """A `Host` header without its port, in lower case."""
    name, _, port = host.rpartition(":")
    return (name if name and port.isdigit() else host).lower()
