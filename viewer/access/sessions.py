"""A session that somebody may not see is, to him, a session that does not exist.

Its id is replaced, before the endpoint is called, by one that no session has. So whatever the endpoint says of unknown
sessions, it says of that one too, byte for byte, and no endpoint has to remember to look.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from starlette.types import Scope

from harness.errors import InvalidInput
from harness.ids import IdSource, check_id
from viewer.access.principal import Principal

NAMES_BEGIN = "session"
"""Parameters that name a session: `sessionId`, and where two are compared `sessionA` and `sessionB`."""
PREFIX = "sessionPrefix"
"""How the ids of the sessions begin that a list is of."""

About = tuple[tuple[str, str | None], ...]
"""The parameters that name what an answer is about: of each session, and of its run, where that is of one."""
ONE_RUN: Final[About] = (("sessionId", "runId"),)
TWO_RUNS: Final[About] = (("sessionA", "runA"), ("sessionB", "runB"))
ONE_SESSION: Final[About] = (("sessionId", None),)


class Sessions:
    """The sessions that requests name."""

    def __init__(self, ids: IdSource) -> None:
        self.nobodys: Final = f"no-session-{ids.salt().hex()}"
        """The id of no session."""

    def named(self, scope: Scope) -> list[str]:
        """Those in the path and in the query."""
        return [value for name, value in _parameters(scope) if _is_one(name) and name != PREFIX]

    def subjects(self, scope: Scope, about: About) -> list[tuple[str | None, str | None]]:
        """The session and the run of each that the answer is about; another parameter never passes for one of these."""
        # Of a name that stands in the path, too, that is the one that the endpoint takes.
        given = dict(reversed(_parameters(scope)))
        named = [(given.get(session), None if run is None else given.get(run)) for session, run in about]
        found = [keys for keys in named if keys != (None, None)]
        if len(found) < len(named):
            # Only the one is named: the other is to be chosen of all runs of its session.
            return [(session, None) for session, _ in found] or [(None, None)]
        return found or [(None, None)]

    def narrow(self, scope: Scope, principal: Principal) -> None:
        """Let a list be of his sessions alone, as if he had asked for these."""
        prefix, query = principal.session_prefix, _in_query(scope)
        asked = [value for name, value in query if name == PREFIX]
        if prefix is None or (asked and all(one.startswith(prefix) for one in asked)):
            return
        # Whoever asks for what is none of his finds nothing.
        wanted = prefix if all(prefix.startswith(one) for one in asked) else self.nobodys
        others = [(name, value) for name, value in query if name != PREFIX]
        scope["query_string"] = urlencode([*others, (PREFIX, wanted)]).encode()

    def hide(self, scope: Scope, hidden: Collection[str]) -> None:
        """Let the request ask for a session that is not there, instead of any of these."""
        scope["path_params"] = dict(self._without(scope["path_params"].items(), hidden))
        scope["query_string"] = urlencode(self._without(_in_query(scope), hidden)).encode()

    def _without(self, parameters: Iterable[tuple[str, Any]], hidden: Collection[str]) -> list[tuple[str, Any]]:
        return [(name, self.nobodys if _is_one(name) and value in hidden else value) for name, value in parameters]


def safe_id(value: str | None) -> str | None:
    """The id, as it may be recorded; None for what can be none."""
    try:
        return None if value is None else check_id("id", value)
    except InvalidInput:
        return None


def _parameters(scope: Scope) -> list[tuple[str, str]]:
    return [*((name, str(value)) for name, value in scope["path_params"].items()), *_in_query(scope)]


def _in_query(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)


def _is_one(name: str) -> bool:
    return name.startswith(NAMES_BEGIN)
