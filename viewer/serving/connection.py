"""A connection with bounds: what a client begins it has to end, and what it is sent it has to read.

uvicorn bounds what it keeps of a request, and how long a connection may do nothing between two requests. The rest is
here: a client that sends its request a byte now and then, one that does not read its answer, and too many at once.
"""

import asyncio
import logging
import socket
from typing import Any, Final

import h11
import orjson
from uvicorn.protocols.http.h11_impl import H11Protocol

log = logging.getLogger(__name__)

HEAD_BYTES_MAX: Final = 32 * 1024
"""A request's line and headers together; a longer head is refused with 431 before it has come to its end."""
HEAD_TIMEOUT_S: Final = 10.0
"""From the connection, or a later request's first byte, to the end of the head; then the connection is cut."""
REST_TIMEOUT_S: Final = 10.0
"""How long the rest of a body that nobody read may take after the answer; then the connection is cut."""
KEEP_ALIVE_S: Final = 5
"""How long a connection may do nothing between two requests; then it is closed."""
SEND_TIMEOUT_S: Final = 10.0
SEND_BYTES_MIN: Final = 16 * 1024
"""A client that is behind takes this much, or all that is left, in each `SEND_TIMEOUT_S`; else it is dropped.

What waits for it in this process is no more than one part of its answer, since no further one is made until then.
"""
CONNECTIONS_MAX: Final = 512
"""Connections at once; whoever comes later is told so with 503 and closed."""

BEGUN, REST = "begun", "rest"


class BoundedConnection(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, within the bounds above."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._owed: str | None = None
        self._owed_until: asyncio.TimerHandle | None = None
        self._unread_bytes = 0
        self._read_until: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Watch it from its beginning."""
        super().connection_made(transport)
        _send_at_once(transport)
        # So that the transport says whenever anything is unread.
        transport.set_write_buffer_limits(high=0)
        if len(self.connections) > CONNECTIONS_MAX:
            self._refuse(503, "too_many_connections", "too many connections are open", b"retry-after: 1\r\n")
            log.warning("a connection was turned away, as %d are open", CONNECTIONS_MAX)
        self._watch_request()

    def data_received(self, data: bytes) -> None:
        """Take it, and see what is owed yet."""
        super().data_received(data)
        self._watch_request()

    def on_response_complete(self) -> None:
        """See whether the request has been sent to its end."""
        super().on_response_complete()
        self._watch_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is owed any more."""
        super().connection_lost(exc)
        self._owe(None, 0)
        self._stop_waiting_for_reader()

    def pause_writing(self) -> None:
        """The client has something to read."""
        super().pause_writing()
        self._unread_bytes = self.transport.get_write_buffer_size()
        self._read_until = self.loop.call_later(SEND_TIMEOUT_S, self._see_what_was_read)

    def resume_writing(self) -> None:
        """It has read all of it."""
        super().resume_writing()
        self._stop_waiting_for_reader()

    def _unsupported_upgrade_warning(self) -> None:
        """An offer to speak another protocol is passed over; uvicorn would warn of each, and advise to install one."""

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP, or too long a head, in the one shape of every answer."""
        if len(self.conn.trailing_data[0]) > HEAD_BYTES_MAX:
            self._refuse(431, "headers_too_large", f"line and headers are longer than {HEAD_BYTES_MAX} bytes")
        else:
            self._refuse(400, "malformed_request", "this is not HTTP/1.1")

    def _watch_request(self) -> None:
        if self.transport.is_closing() or self.timeout_keep_alive_task is not None:
            self._owe(None, 0)
        elif self.conn.their_state is h11.IDLE:
            self._owe(BEGUN, HEAD_TIMEOUT_S)
        elif self.conn.their_state is h11.SEND_BODY and self.conn.our_state is h11.DONE:
            self._owe(REST, REST_TIMEOUT_S)
        else:
            self._owe(None, 0)

    def _owe(self, what: str | None, within_s: float) -> None:
        """A deadline stands until what is owed has come; more of the same does not move it."""
        if what == self._owed:
            return
        if self._owed_until is not None:
            self._owed_until.cancel()
        self._owed = what
        self._owed_until = None if what is None else self.loop.call_later(within_s, self._cut, "sent no whole request")

    def _see_what_was_read(self) -> None:
        unread_bytes = self.transport.get_write_buffer_size()
        if self._unread_bytes - unread_bytes < SEND_BYTES_MIN:
            self._cut("did not read its answer")
            return
        self._unread_bytes = unread_bytes
        self._read_until = self.loop.call_later(SEND_TIMEOUT_S, self._see_what_was_read)

    def _stop_waiting_for_reader(self) -> None:
        if self._read_until is not None:
            self._read_until.cancel()
            self._read_until = None

    def _cut(self, why: str) -> None:
        log.info("a connection was cut, as its client %s in time", why)
        self.transport.abort()

    def _refuse(self, status: int, code: str, message: str, more_headers: bytes = b"") -> None:
        """Answer before there is a request, and close."""
        body = orjson.dumps({"code": code, "message": message, "data": None})
        self.transport.write(
            b"HTTP/1.1 %d \r\ncontent-type: application/json\r\nx-content-type-options: nosniff\r\n"
            b"%bcontent-length: %d\r\nconnection: close\r\n\r\n%b" % (status, more_headers, len(body), body)
        )
        self.transport.close()


def _send_at_once(transport: asyncio.Transport) -> None:
    """Else the body waits until the client has acknowledged the head, which may take it 40 ms.

    asyncio sees to that only of sockets that say they are TCP, which those that come of `socket.create_server` do not.
    """
    connected = transport.get_extra_info("socket")
    if connected is not None and connected.family != socket.AF_UNIX:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
