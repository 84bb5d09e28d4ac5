"""What a reverse proxy says of a request that it passes on, believed only of proxies that were named.

Of `X-Forwarded-Proto` and `X-Forwarded-Host` the last value counts, which the nearest proxy wrote; `X-Forwarded-For` is
read from its end to the first address that is no named proxy. Whatever else says where a request came from is taken
away, so that nothing behind can believe it by mistake. The sub-path is `root_path`, and no request can say another.
"""

import ipaddress
import re
from collections.abc import Iterable
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from harness.errors import InvalidInput

UNIX: Final = "unix"
"""Stands for whoever may open the server's Unix socket."""
FORWARDED_HOPS_MAX = 20
"""Addresses of `X-Forwarded-For` that are looked at."""
NAMED_HOST: Final = "tachograph.named_host"
"""Where the scope keeps the `Host` that the proxy itself asked for, when it forwards another."""

_SCHEMES = frozenset({"http", "https"})
_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class TrustedProxies:
    """The proxies that were named, each as an address, a network or `unix`."""

    def __init__(self, names: Iterable[str]) -> None:
        given = list(names)
        self.trusts_unix = UNIX in given
        self._networks = [_network(name) for name in given if name != UNIX]

    def __bool__(self) -> bool:
        return self.trusts_unix or bool(self._networks)

    def trusts(self, address: str | None) -> bool:
        """Whether what stands at this address is a named proxy; None is the other end of a Unix socket."""
        if address is None:
            return self.trusts_unix
        found = _address(address)
        return found is not None and any(found in network for network in self._networks)

    def client_of(self, forwarded_for: str) -> str | None:
        """The last address that is no named proxy, or the farthest one; None where nothing readable is there."""
        client = None
        for hop in reversed(forwarded_for.split(",")[-FORWARDED_HOPS_MAX:]):
            address = _address(hop.strip())
            if address is None:
                break
            client = str(address)
            if not self.trusts(client):
                break
        return client


class Forwarded:
    """Gives requests of named proxies the client, scheme and host that they were made with."""

    def __init__(self, app: ASGIApp, proxies: TrustedProxies) -> None:
        self.app = app
        self.proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            if self.proxies and self.proxies.trusts(scope["client"][0] if scope.get("client") else None):
                self._believe(scope)
            scope["headers"] = [(name, value) for name, value in scope["headers"] if not _says_where_from(name)]
        await self.app(scope, receive, send)

    def _believe(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        client = self.proxies.client_of(",".join(headers.getlist("x-forwarded-for")))
        if client is not None:
            scope["client"] = (client, 0)
        scheme = _last(headers, "x-forwarded-proto").lower()
        if scheme in _SCHEMES:
            scope["scheme"] = scheme
        host = _last(headers, "x-forwarded-host")
        if host:
            scope[NAMED_HOST] = headers.get("host", "")
            # One that no host can have is kept from passing for none.
            kept = host if _HOST.fullmatch(host) else "?"
            others = [(name, value) for name, value in scope["headers"] if name != b"host"]
            scope["headers"] = [(b"host", kept.encode("latin-1")), *others]


def _says_where_from(name: bytes) -> bool:
    return name.startswith(b"x-forwarded-") or name in (b"forwarded", b"x-real-ip")


def _last(headers: Headers, name: str) -> str:
    return ",".join(headers.getlist(name)).rpartition(",")[2].strip()


def _network(name: str) -> Network:
    try:
        return ipaddress.ip_network(name)
    except ValueError:
        problem = f"{name!r} is no address and no network such as 10.0.0.0/8, and not {UNIX}"
        raise InvalidInput("trusted proxy", problem) from None


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address in `1.2.3.4`, `1.2.3.4:5678`, `::1` or `[::1]:5678`; one of IPv4 in IPv6 is that of IPv4."""
    host = text
    if text.startswith("["):
        host = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        host = text.partition(":")[0]
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
