"""The description of the API is that of the real routes, and real answers are as it says (SPEC D14)."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from harness.errors import LedgerUnavailable
from tests.viewer.fake_reader import FakeReader, unreadable
from tests.viewer.served import client_of, served
from viewer.access.guard import Guard
from viewer.access.routes import GuardedRoute
from viewer.app import create_app, wants_json
from viewer.openapi.document import operations

RUN = "/api/diagnosis/s-1/runs/r-answered"
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
EXAMPLES = 6
OPTIONS = ("--generation-deterministic", "--no-color", "--request-timeout=30")


@pytest.fixture(scope="module")
def path(recorded_runs, tmp_path_factory):
    return Path(shutil.copy(recorded_runs, tmp_path_factory.mktemp("described")))


@pytest.fixture(scope="module")
def client(path):
    with client_of(path, writable=True) as client:
        yield client


@pytest.fixture(scope="module")
def document(client) -> dict[str, Any]:
    return client.get("/api/openapi.json").json()


def api_routes():
    routes = create_app(FakeReader()).routes
    return [route for route in routes if isinstance(route, GuardedRoute) and wants_json(route.path)]


def test_every_route_of_the_api_is_described():
    assert [route.path for route in api_routes() if route.described is None] == []


def test_every_described_operation_is_in_the_document_with_its_right(document):
    for operation in operations(api_routes()):
        said = document["paths"][operation.route.path][operation.method.lower()]
        assert said["summary"]
        needs = operation.route.needs
        assert said["security"] == ([] if needs is None else [{"bearer": [needs.value]}, {}])
    ids = [said["operationId"] for path in document["paths"].values() for said in path.values()]
    assert len(ids) == len(set(ids)) == len(list(operations(api_routes())))


def schemas_in(value):
    if isinstance(value, dict):
        for key, child in value.items():
            if key == "schema":
                yield child
            else:
                yield from schemas_in(child)
    elif isinstance(value, list):
        for child in value:
            yield from schemas_in(child)


def test_every_schema_is_one_and_every_reference_leads_somewhere(document):
    assert document["openapi"].startswith("3.1")
    components = document["components"]["schemas"]
    for schema in [*schemas_in(document["paths"]), *components.values()]:
        jsonschema_rs.validator_for({**schema, "components": document["components"]})


def as_described(document, method, template, answer):
    """Nothing, where the answer is as the document says; else what is wrong with it."""
    said = document["paths"][template][method.lower()]["responses"].get(str(answer.status_code))
    if said is None:
        return f"{answer.status_code} is not described: {answer.text[:200]}"
    if not answer.content:
        return "" if "content" not in said else f"{answer.status_code} has a body"
    media_type = answer.headers["content-type"].partition(";")[0]
    if media_type not in said.get("content", {}):
        return f"{media_type} is not described"
    schema = said["content"][media_type]["schema"]
    if media_type == "application/json":
        validator = jsonschema_rs.validator_for({**schema, "components": document["components"]})
        return "; ".join(f"{error.message} at {error.instance_path}" for error in validator.iter_errors(answer.json()))
    return ""


TRACE = "/api/diagnosis/{sessionId}/trace"
RUNS = "/api/chat/session/{sessionId}/runs"
OF_RUN = "/api/diagnosis/{sessionId}/runs/{runId}"
RUN_IDS = [("s-1", "r-answered"), ("s-1", "r-budget"), ("s-2", "r-failed"), ("s-2", "r-cancelled"), ("s-4", "r-astray")]
BOTH = "sessionA=s-1&runA=r-answered&sessionB=s-1&runB=r-budget"
READS = [
    ("/api/diagnosis/compare", f"/api/diagnosis/compare?{BOTH}", 200),
    ("/api/diagnosis/compare", "/api/diagnosis/compare?sessionA=s-1", 400),
    ("/api/diagnosis/compare", f"/api/diagnosis/compare?{BOTH.replace('r-budget', 'r-none')}", 404),
    ("/api/audit", "/api/audit", 200),
    ("/api/audit/events", "/api/audit/events?after=1", 200),
    ("/api/audit/events", "/api/audit/events?after=x", 400),
    ("/api/audit/verification", "/api/audit/verification", 200),
    ("/api/audit/runs", "/api/audit/runs?sessionId=s-1&runId=r-answered", 200),
    ("/api/audit/runs", "/api/audit/runs?sessionId=s-2&runId=r-answered", 404),
    ("/api/erasures", "/api/erasures", 200),
    ("/api/erasures", "/api/erasures?sessionPrefix=%20", 400),
    ("/api/erasures", "/api/erasures?sessionPrefix=", 200),
    ("/healthz", "/healthz", 200),
    ("/api/openapi.json", "/api/openapi.json", 200),
    ("/api/chat/session/{sessionId}", "/api/chat/session/s-1", 200),
    ("/api/chat/session/{sessionId}", "/api/chat/session/s-none", 404),
    ("/api/chat/session/{sessionId}", "/api/chat/session/%20", 400),
    (RUNS, "/api/chat/session/s-2/runs?limit=1", 200),
    (RUNS, "/api/chat/session/s-2/runs?cursor=none", 400),
    (RUNS, "/api/chat/session/s-none/runs", 404),
    ("/api/diagnosis/runs", "/api/diagnosis/runs?status=SUCCESS&label=team%3Dops", 200),
    ("/api/diagnosis/runs", "/api/diagnosis/runs?limit=3", 200),
    ("/api/diagnosis/runs", "/api/diagnosis/runs?status=NONE", 400),
    ("/api/diagnosis/overview", "/api/diagnosis/overview?window=all", 200),
    ("/api/diagnosis/overview", "/api/diagnosis/overview?window=never", 400),
    ("/api/chat/sessions", "/api/chat/sessions?limit=3", 200),
    ("/api/chat/sessions", "/api/chat/sessions?sessionPrefix=%20", 400),
    ("/api/chat/sessions", "/api/chat/sessions?sessionPrefix=", 200),
    (TRACE, "/api/diagnosis/s-1/trace", 400),
    (TRACE, "/api/diagnosis/s-1/trace?runId=r-none", 404),
    *((TRACE, f"/api/diagnosis/{session_id}/trace?runId={run_id}", 200) for session_id, run_id in RUN_IDS),
    *(
        (f"{OF_RUN}/{part}", f"/api/diagnosis/{session_id}/runs/{run_id}/{part}", 200)
        for session_id, run_id in RUN_IDS
        for part in ("steps", "tools", "events")
    ),
    *((f"{OF_RUN}/{part}", f"{RUN}/{part}?cursor=x", 400) for part in ("steps", "tools", "events")),
    *((f"{OF_RUN}/{part}", f"/api/diagnosis/s-2/runs/r-answered/{part}", 404) for part in ("steps", "tools", "events")),
    (f"{OF_RUN}/events", f"{RUN}/events?format=ndjson", 200),
    (f"{OF_RUN}/events/{{seq}}", f"{RUN}/events/1", 200),
    (f"{OF_RUN}/events/{{seq}}", f"{RUN}/events/999", 404),
    (f"{OF_RUN}/events/{{seq}}", f"{RUN}/events/x", 400),
    (f"{OF_RUN}/live", f"{RUN}/live", 200),
    (f"{OF_RUN}/live", f"{RUN}/live?from=now", 204),
    (f"{OF_RUN}/live", "/api/diagnosis/s-1/runs/r-none/live", 404),
    (f"{OF_RUN}/live", "/api/diagnosis/s-1/runs/r-none/live?from=now", 404),
]


@pytest.mark.parametrize(("template", "url", "status"), READS)
def test_what_is_read_is_as_it_is_described(client, document, template, url, status):
    answer = client.get(url)
    assert answer.status_code == status
    assert as_described(document, "GET", template, answer) == ""
    if "etag" in answer.headers:
        unchanged = client.get(url, headers={"If-None-Match": answer.headers["etag"]})
        assert unchanged.status_code == 304
        assert as_described(document, "GET", template, unchanged) == ""


@pytest.mark.parametrize(
    ("status", "query", "headers"),
    [
        (400, "", {"Host": "elsewhere.example"}),
        (403, "", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}),
        (414, f"&x={'x' * 9_000}", {}),
        (431, "", {"X": "x" * 17_000}),
    ],
)
def test_what_any_request_can_be_refused_for_is_described_of_each(client, document, status, query, headers):
    for template, url in {template: url for template, url, expected in READS if expected == 200}.items():
        answer = client.get(url + (query if "?" in url else query.replace("&", "?")), headers=headers)
        assert answer.status_code == status
        assert as_described(document, "GET", template, answer) == ""


class Full:
    """A ledger on a disk that is full."""

    async def record_system(self, model, **fields):
        raise LedgerUnavailable("database or disk is full")


@pytest.mark.parametrize("template", [TRACE, RUNS, f"{OF_RUN}/steps", "/api/diagnosis/overview", "/api/diagnosis/runs"])
def test_what_cannot_be_put_on_record_is_not_shown_as_is_described(document, template):
    with client_of(FakeReader(), guard=Guard(None, Full())) as client:
        answer = client.get(template.format(sessionId="s", runId="r"))
        assert (answer.status_code, answer.json()["code"]) == (503, "ledger_unavailable")
        assert as_described(document, "GET", template, answer) == ""


def test_a_client_that_has_seen_more_than_there_is_is_told_so(client, document):
    answer = client.get(f"{RUN}/live", headers={"Last-Event-ID": "999999"})
    assert (answer.status_code, answer.json()["code"]) == (409, "ahead_of_log")
    assert as_described(document, "GET", f"{OF_RUN}/live", answer) == ""


ASTRAY = {"scope": "RUN", "sessionId": "s-4", "runId": "r-astray"}
CONFIRM = "/api/erasures/{requestId}/confirm"
BOUND = {"sessionId": "s-1", "runId": "r-answered"}
WRITES = [
    ("/api/feedback", "/api/feedback", {"json": {**BOUND, "useful": True}}, 200),
    ("/api/feedback", "/api/feedback", {"json": BOUND}, 400),
    ("/api/feedback", "/api/feedback", {"json": {**BOUND, "runId": "r-none", "useful": True}}, 404),
    ("/api/feedback", "/api/feedback", {"content": b"{", "headers": {"Content-Type": "application/json"}}, 400),
    ("/api/feedback", "/api/feedback", {"content": b"useful"}, 415),
    ("/api/feedback", "/api/feedback", {"content": b" " * 70_000}, 413),
    ("/api/feedback", "/api/feedback", {"json": BOUND, "headers": {"Origin": "http://elsewhere.example"}}, 403),
    (f"{OF_RUN}/cancel", f"{RUN}/cancel", {}, 409),
    (f"{OF_RUN}/cancel", f"{RUN}/cancel", {"json": {"reason": "BECAUSE"}}, 400),
    (f"{OF_RUN}/cancel", "/api/diagnosis/s-2/runs/r-answered/cancel", {}, 404),
    ("/api/erasures", "/api/erasures", {"json": ASTRAY}, 202),
    ("/api/erasures", "/api/erasures", {"json": {**ASTRAY, "scope": "SESSION"}}, 400),
    ("/api/erasures", "/api/erasures", {"json": {**ASTRAY, "sessionId": "s-1"}}, 404),
    (CONFIRM, "/api/erasures/request-none/confirm", {}, 404),
]


@pytest.mark.parametrize(("template", "url", "request_", "status"), WRITES)
def test_what_is_written_is_answered_as_it_is_described(client, document, template, url, request_, status):
    answer = client.post(url, **request_)
    assert answer.status_code == status
    assert as_described(document, "POST", template, answer) == ""


PARTS = ("steps", "events", "live")
UNREAD = ["/healthz", "/api/chat/session/{sessionId}", RUNS, *(f"{OF_RUN}/{part}" for part in PARTS)]


@pytest.mark.parametrize("template", UNREAD)
def test_a_ledger_that_cannot_be_read_is_described(document, template):
    reader = FakeReader()
    reader.fails = unreadable()
    with client_of(reader) as client:
        answer = client.get(template.format(sessionId="s", runId="r"))
        assert (answer.status_code, as_described(document, "GET", template, answer)) == (503, "")


def test_every_described_operation_was_tried_with_success():
    tried = {("get", template) for template, _, status in READS if status == 200}
    tried |= {("post", template) for template, *_, status in WRITES if status in (200, 202, 409)}
    # Where two persons may erase: `tests/viewer/test_erasing.py`.
    tried.add(("post", CONFIRM))
    described = {(operation.method.lower(), operation.route.path) for operation in operations(api_routes())}
    assert described - tried == set()


def test_a_description_below_a_sub_path_says_so():
    with client_of(FakeReader(), root_path="/ledger") as client:
        assert client.get("/api/openapi.json").json()["servers"] == [{"url": "/ledger"}]


LISTS = {
    "/api/chat/session/{sessionId}/runs": "/api/chat/session/s-2/runs",
    "/api/diagnosis/runs": "/api/diagnosis/runs",
    "/api/chat/sessions": "/api/chat/sessions",
}
"""Each with an address of which the first page leads to a second: only a real cursor is a valid one."""
OPERATION = """
[[operations]]
include-path = "{template}"
parameters = {{ "query.cursor" = "{cursor}", "query.from" = "2026-01-01", "query.to" = "2026-12-31" }}
"""
KNOWN = """
[parameters]
"path.sessionId" = "s-2"
"path.runId" = "r-failed"
"query.runId" = "r-failed"
"""


def configuration(client, *, known):
    text = "[warnings]\nenabled = false\n" + (KNOWN if known else "")
    for template, url in LISTS.items():
        cursor = re.search(r"cursor=([^&]+)", client.get(f"{url}?limit=1").links["next"]["url"])
        assert cursor is not None
        text += OPERATION.format(template=template, cursor=cursor[1])
    return text


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("known", "phases"),
    [(True, "fuzzing"), (False, "coverage,fuzzing,stateful")],
    ids=["a run that there is", "whatever may come"],
)
def test_schemathesis_finds_nothing(path, tmp_path, known, phases):
    with served(path, writable=True) as url, client_of(path) as client:
        config = tmp_path / "schemathesis.toml"
        config.write_text(configuration(client, known=known))
        options = [f"--phases={phases}", f"--max-examples={EXAMPLES}", *OPTIONS]
        command = [str(SCHEMATHESIS), "--config-file", str(config), "run", f"{url}/api/openapi.json", *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr[-2_000:]
