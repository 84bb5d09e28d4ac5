"""That what somebody sends who has signed in comes from a page that was made for him.

A browser adds his cookie to whatever any page sends, so three things stand before a write. The cookie is
`SameSite=Strict`. The request must say in `Origin` or `Sec-Fetch-Site` that a page of this server sent it, where
programs with a token may be silent. And of what a page elsewhere could send without asking this server first, that is
forms, only those are taken that hold a word that such a page cannot know: an HMAC under the session's secret, so that
nothing is stored. JSON cannot be sent from elsewhere without asking, and this server never agrees.
"""

from __future__ import annotations

import hmac
from typing import Final

from markupsafe import Markup
from starlette.requests import Request
from starlette.types import Message, Receive, Scope

from viewer.access.errors import ForeignForm
from viewer.access.principal import Principal
from viewer.http.form import MEDIA_TYPE, read_form
from viewer.http.json_body import read_bytes

FIELD: Final = "csrf"
OTHER_FORMS: Final = frozenset({"multipart/form-data", "text/plain"})
"""What a page elsewhere could send, too, and no page of ours does."""


def csrf_field(principal: Principal | None) -> Markup:
    """The field that a form of a page has; nothing for who has not signed in."""
    if principal is None or principal.session_secret is None:
        return Markup()
    return Markup('<input type="hidden" name="{}" value="{}">').format(FIELD, _word(principal.session_secret))


async def proven(scope: Scope, receive: Receive, session_secret: str) -> Receive:
    """What the endpoint receives instead, once a form has proven that it is ours; else `ForeignForm`."""
    media_type = Request(scope).headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type in OTHER_FORMS:
        raise ForeignForm
    if media_type != MEDIA_TYPE:
        return receive
    data = await read_bytes(Request(scope, receive))
    fields = await read_form(Request(scope, _again(data, receive)))
    if not hmac.compare_digest(fields.get(FIELD, "").encode(), _word(session_secret).encode()):
        raise ForeignForm
    return _again(data, receive)


def _word(session_secret: str) -> str:
    return hmac.digest(session_secret.encode("utf-8", "surrogatepass"), b"tachograph/csrf/v1", "sha256").hex()


def _again(data: bytes, receive: Receive) -> Receive:
    """A body that was read, as if it were still to be read."""
    is_told = False

    async def again() -> Message:
        nonlocal is_told
        if is_told:
            return await receive()
        is_told = True
        return {"type": "http.request", "body": data, "more_body": False}

    return again
