"""Why somebody is not let in: each with a stable code, an HTTP status, and what he may do about it."""

from __future__ import annotations

from typing import ClassVar

from viewer.access.rights import Right
from viewer.http.refusals import Refusal


class AccessRefused(Refusal):
    """Base of what the guard answers instead of the endpoint."""

    code = "access_refused"


class Unauthenticated(AccessRefused):
    """Nobody knows who asks: no token, or none that opens anything any more."""

    code = "unauthenticated"
    status = 401
    headers: ClassVar[dict[str, str]] = {"WWW-Authenticate": "Bearer"}

    def __init__(self) -> None:
        super().__init__("this server asks for an access token, and knows none that came with the request")


class Forbidden(AccessRefused):
    """The token is not good for this."""

    code = "forbidden"

    def __init__(self, needed: Right) -> None:
        self.needed = needed
        super().__init__(f"this needs the right to {needed}, which the token does not give")


class AllSessions(AccessRefused):
    """It is about sessions of all kinds, and the token is limited to some."""

    code = "forbidden"

    def __init__(self, session_prefix: str) -> None:
        self.session_prefix = session_prefix
        super().__init__(f"this shows all sessions, and the token opens only those that begin {session_prefix}")


class ForeignForm(AccessRefused):
    """What would change something was not sent by a page of ours."""

    code = "foreign_form"

    def __init__(self) -> None:
        super().__init__("this was not sent from a page that this server made for you; load the page again")


class NotRecorded(AccessRefused):
    """There are tokens, so who looks is put on record, and this server only reads."""

    code = "access_not_recorded"
    status = 503

    def __init__(self) -> None:
        super().__init__(
            "this server cannot record who looks, as it must where there are tokens: serve it with --writable"
        )
