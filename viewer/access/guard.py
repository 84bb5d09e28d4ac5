"""Before every endpoint: who asks, whether he may, and that it is on record.

Where no token was ever made, everybody is anybody, with every right: such a server is reachable from its own machine
alone (`viewer.serve`). From the first token on everybody needs one, on loopback too.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Protocol

from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.types import Receive, Scope

from harness.clock import MonotonicClock, SystemMonotonicClock
from harness.ids import IdSource, RandomIds
from ledger.errors import LedgerError
from ledger.tokens.records import Token, TokenFinder
from viewer.access.errors import AccessRefused, AllSessions, Forbidden, ForeignForm, NotRecorded, Unauthenticated
from viewer.access.forms import proven
from viewer.access.lasting import while_admitted
from viewer.access.noting import FOREIGN_SESSION, Noting, Runs
from viewer.access.principal import ANYBODY, SCOPE_KEY, Principal, principal_in
from viewer.access.records import Recorder
from viewer.access.rights import Right
from viewer.access.rule import Rule
from viewer.access.sessions import Sessions
from viewer.http.security import READING, comes_from_own_page

if TYPE_CHECKING:
    from ledger import Ledger

log = logging.getLogger(__name__)

COOKIE: Final = "tachograph_session"
OPEN_SEEN_S: Final = 1.0
"""How long a server that is open to everybody may take to hear of the first token."""


class SignIns(Protocol):
    """The part of `ledger.tokens.tokens.Tokens` by which people sign in."""

    async def enter(self, code: str) -> str | None:
        """The secret of a new session, for whoever comes first with the code of a link."""

    async def leave(self, secret: str) -> None:
        """End a session."""


class Guard:
    """Lets in, or raises `AccessRefused`."""

    def __init__(
        self,
        tokens: TokenFinder | None = None,
        recorder: Recorder | None = None,
        *,
        runs: Runs | None = None,
        sign_ins: SignIns | None = None,
        clock: MonotonicClock | None = None,
        ids: IdSource | None = None,
    ) -> None:
        """`tokens` of the ledger, and the open ledger itself to record who looks. Without tokens nobody needs one.

        With `runs` of the ledger only what there is counts as looked at, else whatever somebody names.
        """
        self._tokens = tokens
        self._sign_ins = sign_ins
        self._clock = clock or SystemMonotonicClock()
        self._open_since_ns: int | None = None
        self.sessions = Sessions(ids or RandomIds())
        self._noting = None if recorder is None else Noting(recorder, runs, self.sessions, self._clock)

    @classmethod
    def of(cls, ledger: Ledger) -> Guard:
        """That of an open ledger."""
        return cls(ledger.tokens, ledger, runs=ledger.reader, sign_ins=ledger.tokens)

    async def enter(self, code: str) -> str | None:
        """As `SignIns`; where nobody can sign in, no code is right."""
        return None if self._sign_ins is None else await self._sign_ins.enter(code)

    async def leave(self, secret: str) -> None:
        """As `SignIns`."""
        if self._sign_ins is not None:
            await self._sign_ins.leave(secret)

    async def admit(self, scope: Scope, receive: Receive, rule: Rule) -> Receive:
        """Find out who asks, and put it into the scope; content is shown only once it is durable that he looks.

        What is given back is to be received instead: a form was read, to see whose it is.
        """
        principal: Principal | None = None
        try:
            principal = await self._who(scope)
            scope[SCOPE_KEY] = principal
            self._check(scope, rule, principal)
            if principal.session_secret is not None and scope["method"] not in READING:
                receive = await proven(scope, receive, principal.session_secret)
        except AccessRefused as refused:
            await self._note_refusal(rule, principal, refused.code.upper())
            raise
        if rule.lists_sessions:
            self.sessions.narrow(scope, principal)
        hidden: set[str] = set()
        if rule.shows_content and self._noting is not None:
            hidden = await self._noting.subjects(scope, rule, principal)
        foreign = [session_id for session_id in self.sessions.named(scope) if not principal.sees(session_id)]
        if foreign:
            await self._note_refusal(rule, principal, FOREIGN_SESSION, foreign[0])
        if foreign or hidden:
            self.sessions.hide(scope, hidden.union(foreign))
        if not rule.goes_on:
            return receive
        return while_admitted(receive, lambda: self._is_still_admitted(scope, rule))

    async def session_for(self, scope: Scope, session_id: str) -> str:
        """A session that the body names, as whoever asks may see it: another's is one that is not there."""
        principal = principal_in(scope)
        if principal is None or principal.sees(session_id):
            return session_id
        await self._note_refusal(scope["route"].rule, principal, FOREIGN_SESSION, session_id)
        return self.sessions.nobodys

    def _check(self, scope: Scope, rule: Rule, principal: Principal) -> None:
        if rule.needs not in principal.rights:
            raise Forbidden(rule.needs)
        prefix = principal.session_prefix
        if prefix is not None and not (rule.within_sessions or rule.lists_sessions):
            raise AllSessions(prefix)
        is_write = scope["method"] not in READING
        if is_write and principal.session_secret is not None and not comes_from_own_page(scope):
            raise ForeignForm

    async def _who(self, scope: Scope) -> Principal:
        if await self._is_open():
            return ANYBODY
        assert self._tokens is not None, "without tokens it is open"
        if self._noting is None:
            raise NotRecorded
        headers = Headers(scope=scope)
        if "authorization" in headers:
            return _principal(await self._tokens.by_bearer(_bearer(headers)))
        secret = session_in(headers)
        return _principal(None if secret is None else await self._tokens.by_session(secret), secret)

    async def _is_open(self) -> bool:
        if self._tokens is None:
            return True
        now_ns = self._clock.now_ns()
        if self._open_since_ns is not None and now_ns - self._open_since_ns < OPEN_SEEN_S * 1_000_000_000:
            return True
        is_open = not await self._tokens.are_any()
        self._open_since_ns = now_ns if is_open else None
        return is_open

    async def _note_refusal(
        self, rule: Rule, principal: Principal | None, reason: str, session_id: str | None = None
    ) -> None:
        if self._noting is not None:
            await self._noting.refusal(rule, principal, reason, session_id)

    async def _is_still_admitted(self, scope: Scope, rule: Rule) -> bool:
        try:
            self._check(scope, rule, await self._who(scope))
        except AccessRefused:
            return False
        except LedgerError:
            log.warning("who listens could not be looked up again")
        return True


async def session_for(request: Request, session_id: str) -> str:
    """As `Guard.session_for`."""
    guard: Guard = request.app.state.guard
    return await guard.session_for(request.scope, session_id)


def session_in(headers: Headers) -> str | None:
    """The secret that the cookie holds, of whoever has signed in."""
    return cookie_parser(headers.get("cookie", "")).get(COOKIE)


def _bearer(headers: Headers) -> str:
    values = headers.getlist("authorization")
    scheme, _, presented = values[0].partition(" ")
    return presented.strip() if len(values) == 1 and scheme.lower() == "bearer" else ""


def _principal(token: Token | None, session_secret: str | None = None) -> Principal:
    if token is None:
        raise Unauthenticated
    rights = frozenset(map(Right, token.rights))
    return Principal(token.owner, token.token_id, rights, token.session_prefix, session_secret)
