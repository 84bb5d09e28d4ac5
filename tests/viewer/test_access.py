"""Who may do what: every route has a rule, each right opens its own routes alone, and other sessions are not there."""

import asyncio
import contextlib
import re
import sqlite3

import pytest
from starlette.responses import JSONResponse
from starlette.routing import Mount, Route

from demo.api import Api as DemoApi
from ledger.tokens.records import RIGHTS
from tests.ledger.scripted import ScriptedRun
from tests.viewer.fake_reader import FakeReader
from tests.viewer.guarded import guarded
from viewer.access.rights import Right
from viewer.access.routes import ForeignRoute, GuardedRoute
from viewer.app import create_app
from viewer.metrics import Metrics

NEEDS_NOTHING = {"/healthz", "/api/openapi.json", "/style.css", "/style", "/theme", "/login", "/logout", "/audit/open"}
VALUES = {"sessionId": "s-1", "runId": "run-1", "seq": "1", "requestId": "request-1"}
QUERY = {"sessionId": "s-1", "runId": "run-1", "sessionA": "s-1", "runA": "run-1", "sessionB": "s-1", "runB": "run-1"}

FORMS = {
    "/trace/feedback": {"useful": "yes"},
    "/trace/stop": {"confirm": "yes"},
    "/trace/erase": {"confirm": "yes", "reason": "REQUESTED"},
    "/audit/erasures/request-1": {"confirm": "yes"},
    "/theme": {"theme": "dark"},
}
BODIES = {"/api/feedback": {"useful": True}, "/api/erasures": {"scope": "RUN"}}
"""Beside the ids."""


async def odd(request):
    return JSONResponse({"session": request.path_params.get("sessionId")})


def rules_of(app):
    return [route for route in app.routes if isinstance(route, GuardedRoute | ForeignRoute)]


@pytest.fixture(scope="module")
def viewer(tmp_path_factory):
    own = [Route("/odd", odd), Route("/odd/{sessionId}", odd)]
    with guarded(tmp_path_factory.mktemp("access") / "runs.db", extra_routes=own) as viewer:
        viewer.token()
        yield viewer


def is_for_all(route):
    return route.needs is not None and not (route.rule.within_sessions or route.rule.lists_sessions)


def ask(client, route, session="s-1", run="run-1"):
    """What the route answers when it is asked about a run."""
    values = VALUES | {"sessionId": session, "runId": run}
    path = re.sub(r"{(\w+)}", lambda match: values[match[1]], route.path)
    if isinstance(route, ForeignRoute):
        return client.get(path)
    method = next(iter(sorted(route.methods - {"HEAD"})))
    query = QUERY | {"sessionId": session, "runId": run, "sessionA": session, "runA": run}
    if "sessionId" in route.path:
        del query["sessionId"]
    if path == "/audit/bundle":
        query["content"] = "withheld"  # with contents it needs the right to read them, too
    if path in FORMS:
        return client.post(path, params=query, data=FORMS[path], follow_redirects=False)
    body = {"sessionId": session, "runId": run, **BODIES[path]} if path in BODIES else {}
    return client.request(method, path, params=query, json=body if method == "POST" else None)


def test_every_route_of_the_viewer_and_of_the_demo_has_a_rule():
    reader = FakeReader()
    routes = DemoApi(None, None, lambda: "s").routes
    app = create_app(reader, extra_routes=routes, metrics=Metrics(reader))
    without = [route for route in app.routes if not isinstance(route, GuardedRoute | ForeignRoute)]
    assert [(type(route), route.path) for route in without] == [(Mount, "/static")]
    open_to_all = {route.path for route in rules_of(app) if route.needs is None}
    assert open_to_all <= NEEDS_NOTHING


def test_a_page_leads_only_where_whoever_looks_is_let_in(viewer):
    page = "/trace?sessionId=s-1&runId=run-1"
    reader, auditor = viewer.holder("read"), viewer.holder("read", "audit")
    limited = viewer.holder("read", "audit", sessions="s-1")
    assert ["/audit/runs?" in client.get(page).text for client in (reader, auditor, limited)] == [False, True, True]
    assert ['href="/audit"' in client.get(page).text for client in (reader, auditor, limited)] == [False, True, False]
    assert auditor.get("/audit/runs?sessionId=s-1&runId=run-1").status_code == 200


def test_the_rights_are_those_of_the_ledger():
    assert [right.value for right in Right] == list(RIGHTS)


@pytest.mark.parametrize("right", RIGHTS)
def test_a_right_alone_opens_exactly_its_routes(viewer, right):
    client = viewer.holder(right)
    for route in rules_of(viewer.app):
        answer = ask(client, route)
        if route.needs in (None, right):
            assert answer.status_code not in (401, 403), (route.path, answer.text)
        else:
            assert answer.status_code == 403, (route.path, answer.text)
            if route.path.startswith("/api/"):
                assert answer.json()["code"] == "forbidden"
                assert route.needs in answer.json()["message"]


def test_without_a_token_nothing_is_shown_and_programs_are_told_so_in_the_wrapper(viewer):
    client = viewer.client()
    for route in rules_of(viewer.app):
        if route.needs is not None:
            answer = ask(client, route)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), route.path
            assert "disk" not in answer.text
    assert client.get("/api/chat/session/s-1").json()["code"] == "unauthenticated"


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer x", "Bearer token-1.x", "Basic dXNlcjpwYXNz", "Token {}", "{}"]
)
def test_what_is_no_token_opens_nothing(viewer, header):
    _, bearer = viewer.token()
    answer = viewer.client().get("/api/chat/session/s-1", headers={"Authorization": header.format(bearer)})
    assert answer.status_code == 401


def test_a_token_that_was_revoked_opens_nothing_from_then_on(viewer):
    token_id, bearer = viewer.token()
    client = viewer.client(bearer)
    assert client.get("/api/chat/session/s-1").status_code == 200
    viewer.do(lambda ledger: ledger.tokens.revoke(token_id))
    assert client.get("/api/chat/session/s-1").status_code == 401


def test_a_session_of_others_is_answered_as_one_that_is_not_there_by_every_route(viewer):  # R4, CASES 43
    limited, all_of_them = viewer.holder(sessions="s-1"), viewer.holder()
    routes = [route for route in rules_of(viewer.app) if route.needs is not None and route.rule.within_sessions]
    assert {route.path for route in routes} >= {"/trace", "/compare", "/sessions/{sessionId}", "/api/feedback"}
    for route in routes:
        assert ask(limited, route).status_code == ask(all_of_them, route).status_code, route.path
        foreign, unknown = ask(limited, route, "s-2", "run-2"), ask(all_of_them, route, "s-none", "run-2")
        if isinstance(route, ForeignRoute):
            assert foreign.json()["session"].startswith("no-session-")
            continue
        assert foreign.status_code == unknown.status_code == 404, route.path
        if route.path.startswith("/api/"):
            assert foreign.content == unknown.content
        assert ask(limited, route, "s-none", "run-2").content == foreign.content
        assert ask(all_of_them, route, "s-2", "run-2").status_code != 404, route.path


def test_a_comparison_with_a_run_of_others_is_one_with_a_run_that_is_not_there(viewer):
    client = viewer.holder(sessions="s-1")
    query = {"sessionA": "s-1", "runA": "run-1", "sessionB": "s-2", "runB": "run-2"}
    assert client.get("/api/diagnosis/compare", params=query).status_code == 404


def test_what_may_show_all_sessions_is_refused_to_who_may_see_some_whatever_session_he_names(viewer):
    client = viewer.holder(sessions="s-1")
    routes = [route for route in rules_of(viewer.app) if is_for_all(route)]
    assert {route.path for route in routes} >= {"/api/diagnosis/overview", "/metrics", "/odd"}
    for route in routes:
        for answer in (client.get(route.path), client.get(route.path, params={"sessionId": "s-1"})):
            assert answer.status_code == 403, route.path
            assert "begin s-1" in answer.text
            assert "run-2" not in answer.text


def test_a_list_is_of_the_sessions_that_somebody_may_see_whatever_he_asks_for(viewer):
    limited, all_of_them = viewer.holder(sessions="s-1"), viewer.holder()

    def listed(client, path, **query):
        return {row["sessionId"] for row in client.get(path, params=query).json()["data"]}

    for path in ("/api/diagnosis/runs", "/api/chat/sessions"):
        assert listed(all_of_them, path) == {"s-1", "s-2"}
        assert listed(all_of_them, path, sessionPrefix="") == {"s-1", "s-2"}
        assert listed(limited, path) == listed(limited, path, sessionPrefix="s") == {"s-1"}
        assert listed(limited, path, sessionPrefix="") == {"s-1"}
        for foreign in ("s-2", "x"):
            assert listed(limited, path, sessionPrefix=foreign) == set()
    assert listed(limited, "/api/diagnosis/runs", sessionId="s-2") == set()
    twice = limited.get("/api/diagnosis/runs", params=[("sessionPrefix", "s-1"), ("sessionPrefix", "s-2")])
    assert twice.json()["data"] == []


def test_where_no_token_was_ever_made_nobody_needs_one(tmp_path):
    with guarded(tmp_path / "runs.db") as viewer:
        client = viewer.client()
        for route in rules_of(viewer.app):
            assert ask(client, route).status_code not in (401, 403)


def test_a_server_that_has_heard_of_a_token_opens_to_nobody_when_others_take_all_of_them_away(tmp_path):
    with guarded(tmp_path / "runs.db") as viewer:
        holder, stranger = viewer.holder(), viewer.client()
        assert holder.get("/api/chat/session/s-1").status_code == 200
        with contextlib.closing(sqlite3.connect(viewer.file)) as ledger:
            ledger.execute("DELETE FROM token")
            ledger.commit()
        assert [each.get("/api/chat/session/s-1").status_code for each in (holder, stranger)] == [401, 401]


def test_a_list_offers_no_value_that_only_runs_of_others_have(tmp_path):
    async def begin(ledger):
        started = ScriptedRun("run-3", "s-3", writer_id="w3").start(actor="user-of-others", agent="triage")
        await asyncio.wrap_future(ledger.journal.submit(started))

    with guarded(tmp_path / "runs.db") as viewer:
        viewer.do(begin)
        for path in ("/runs", "/runs?sessionPrefix=s-3", "/runs?sessionId=s-3", "/sessions/s-1"):
            assert "user-of-others" not in viewer.holder(sessions="s-1").get(path).text
        assert "user-of-others" in viewer.holder().get("/runs").text


def test_who_may_audit_but_not_read_gets_no_content_in_a_bundle_either(viewer):
    query = {"sessionId": "s-1", "runId": "run-1"}
    for content in ({}, {"content": "included"}):
        refused = viewer.holder("audit").get("/audit/bundle", params=query | content)
        assert refused.status_code == 403
        assert "the right to read" in refused.text
        assert viewer.holder("audit", "read").get("/audit/bundle", params=query | content).status_code == 409
    assert viewer.holder("audit").get("/audit/bundle", params=query | {"content": "withheld"}).status_code == 409
