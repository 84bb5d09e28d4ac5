"""Where to look at every route of the viewer that answers a GET, over a ledger of `hostile_ledger` or another."""

from collections.abc import Iterator
from urllib.parse import quote

from starlette.applications import Starlette

from viewer.access.routes import GuardedRoute

PAGES = {
    "/": ["", "?window=7d"],
    "/runs": ["", "?text={words}", "?agent={words}&label={words}&status=FAILED&cursor=", "?reason=NO_SUCH"],
    "/sessions": ["", "?sessionPrefix={session}"],
    "/sessions/{sessionId}": ["", "?tool={words}&actor={words}"],
    "/trace": [
        "?{keys}",
        "?{keys}&view=steps&content=step-1-output",
        "?{keys}&view=tools&content=tool-17-error",
        "?{keys}&view=tools&content=tool-19-output&offset=4000",
        "?{keys}&view=events&event=8",
        "?{keys}&view=events&q={words}&failures=1",
        "?{keys}&at=12",
        "?{keys}&seek=failure-before",
        "?{keys}&t0=100&t1=900000&idle=shown&verify=1",
    ],
    "/compare": ["?sessionA={session}&runA={run}", "?{both}&show=all", "?{both}&show=differences"],
    "/audit": [f"?list={kind}" for kind in ("", "keys", "erasures", "retention", "restores", "tokens", "accesses")],
    "/audit/verification": [""],
    "/audit/runs": ["?{keys}"],
    "/audit/open": [""],
    "/login": ["", "?code={words}"],
    "/style": [""],
}
"""The pages for people, by route: what of each is looked at. `{words}` is whatever one likes."""
PROGRAMS = {
    "/api/openapi.json": [""],
    "/api/diagnosis/{sessionId}/trace": ["?runId={run}"],
    "/api/chat/session/{sessionId}/runs": [""],
    "/api/chat/session/{sessionId}": [""],
    "/healthz": [""],
    "/api/diagnosis/{sessionId}/runs/{runId}/steps": [""],
    "/api/diagnosis/{sessionId}/runs/{runId}/tools": [""],
    "/api/diagnosis/{sessionId}/runs/{runId}/events": ["", "?format=ndjson"],
    "/api/diagnosis/{sessionId}/runs/{runId}/events/{seq}": [""],
    "/api/diagnosis/runs": ["", "?text={words}"],
    "/api/chat/sessions": [""],
    "/api/diagnosis/overview": [""],
    "/api/diagnosis/{sessionId}/runs/{runId}/live": [""],
    "/api/diagnosis/compare": ["?{both}"],
    "/api/audit": [""],
    "/api/erasures": [""],
    "/api/audit/events": [""],
    "/api/audit/verification": [""],
    "/api/audit/runs": ["?{keys}"],
    "/audit/receipt": ["?{keys}"],
    "/audit/bundle": ["?{keys}"],
    "/style.css": [""],
}
"""What is not for a browser to show: JSON, streams and files."""


def routes_of(app: Starlette) -> list[str]:
    """The paths that answer a GET."""
    return [route.path for route in app.routes if isinstance(route, GuardedRoute) and "GET" in (route.methods or ())]


def addresses(of: dict[str, list[str]], session: str, run: str, other: str, words: str) -> Iterator[str]:
    """Every address of these, on one run, and on that and another."""
    keys = f"sessionId={session}&runId={run}"
    both = f"sessionA={session}&runA={run}&sessionB={session}&runB={other}"
    for path, states in of.items():
        placed = path.format(sessionId=session, runId=run, seq=1)
        for state in states:
            yield placed + state.format(keys=keys, both=both, session=session, run=run, words=quote(words, safe=""))
