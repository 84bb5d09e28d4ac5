"""Content is inert, and only loopback's own names are answered."""

import http.client
import re

import pytest
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from tests.viewer.example_runs import HOSTILE, SCRIPT, all_runs
from tests.viewer.fake_reader import FakeReader
from tests.viewer.served import client_of, served

PATHS = [
    "/",
    "/trace?sessionId=s-666&runId=run-hostile",
    "/trace?sessionId=s-666&runId=run-hostile&event=1",
    "/trace?sessionId=s-666&runId=run-hostile&content=tool-9-output",
    "/sessions/s-666",
    "/nowhere",
]


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_carries_a_policy_that_runs_nothing_from_content(client, path):
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "frame-ancestors 'none'" in policy
    assert "base-uri 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers


def test_the_api_static_files_and_errors_carry_it_too(client):
    for path in ("/api/chat/session/s-42", "/static/css/base.css", "/api/nothing", "/static/nothing.css"):
        assert "content-security-policy" in client.get(path).headers


@pytest.mark.parametrize("path", PATHS)
def test_no_page_has_inline_script_style_or_handlers(client, path):
    """Only tags made by the templates count: content is text, so it has no tags."""
    text = client.get(path).text
    tags = re.findall(r"<[a-zA-Z][^>]*>", text)
    assert not [tag for tag in tags if re.search(r"\s(on\w+|style)\s*=", re.sub(r'"[^"]*"', '""', tag))]
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL)
    assert scripts == [""] * len(scripts)
    assert "<style" not in text


def test_hostile_text_is_shown_escaped_in_every_place_where_content_stands(client):  # CASES 46
    text = client.get("/trace?sessionId=s-666&runId=run-hostile").text
    assert SCRIPT not in text
    assert text.count("&lt;script&gt;window.pwned = 1&lt;/script&gt;") > 10
    assert "{{7*7}}" in text
    assert "<img" not in text
    assert 'href="javascript' not in text


def test_control_and_direction_characters_never_reach_a_page_raw(client):  # CASES 46
    text = client.get("/trace?sessionId=s-666&runId=run-hostile").text
    raw = set("\x00\x07\x08\x1b\u202e\u202c\u2066\u2069\u200b\U000e0041")
    assert not raw & set(text)
    assert "‹ESC›" in text
    assert "‹U+202E›" in text


def test_the_api_gives_hostile_text_exactly(client):
    data = client.get("/api/diagnosis/s-666/trace?runId=run-hostile").json()["data"]
    assert data["answer"] == " ".join(HOSTILE)
    assert [tool["output"]["text"] for tool in data["toolInvocations"][: len(HOSTILE)]] == HOSTILE


HOSTS = [
    "evil.example",
    "127.0.0.1.evil.example",
    "localhost.evil.example:80",
    "",
    "0.0.0.0",
    "localhost.",
    "localhost:80:80",
    "localhost:x",
    "user@localhost",
    "localhost, evil.example",
    "[::1",
    "::1",
    "[::ffff:127.0.0.1]",
    "*",
]


@pytest.mark.parametrize("host", HOSTS)
def test_a_request_under_a_foreign_host_name_is_refused(client, host):
    answer = client.get("/api/chat/session/s-42", headers={"Host": host})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_host")
    assert "s-42" not in answer.text


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:99", "[::1]:8321"])
def test_loopbacks_own_names_are_answered(client, host):
    assert client.get("/healthz", headers={"Host": host}).status_code == 200


def test_a_host_can_be_allowed():
    with client_of(FakeReader(), allowed_hosts=["viewer.example"]) as client:
        assert client.get("/healthz", headers={"Host": "viewer.example"}).status_code == 200
        assert client.get("/healthz", headers={"Host": "localhost"}).status_code == 400


def test_an_applications_own_routes_are_served_with_the_same_care():
    async def hello(request):
        return PlainTextResponse("hello")

    with client_of(FakeReader(), extra_routes=[Route("/api/hello", hello)]) as client:
        answer = client.get("/api/hello")
        assert answer.text == "hello"
        assert "content-security-policy" in answer.headers


def test_a_path_cannot_leave_the_static_folder():
    with served(FakeReader(all_runs())) as base_url:
        connection = http.client.HTTPConnection(base_url.removeprefix("http://"))
        for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd"):
            connection.request("GET", path)
            answer = connection.getresponse()
            assert answer.status == 404
            assert b"create_app" not in answer.read()
        connection.close()


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST"])
@pytest.mark.parametrize("path", [*PATHS, "/api/chat/session/s-42", "/api/feedback", "/healthz", "/style.css"])
def test_no_answer_lets_a_page_of_another_origin_read_it(client, method, path):
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    for origin in ("https://evil.example", "null", str(client.base_url)):
        answer = client.request(method, path, headers={"Origin": origin, **asks})
        assert [name for name in answer.headers if name.startswith("access-control-")] == []
        if method == "OPTIONS":
            assert answer.status_code in (404, 405)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "whatever"])
@pytest.mark.parametrize(("mode", "dest"), [("no-cors", "image"), ("cors", "empty"), ("navigate", "iframe")])
def test_a_page_elsewhere_loads_nothing_from_here_into_itself(client, site, mode, dest):
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
    for path in (*PATHS, "/api/chat/session/s-42", "/static/css/base.css"):
        answer = client.get(path, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "foreign_origin")


@pytest.mark.parametrize(
    ("site", "mode", "dest"),
    [("cross-site", "navigate", "document"), ("same-origin", "cors", "empty"), ("none", "navigate", "document")],
)
def test_a_link_from_elsewhere_and_what_our_own_pages_load_is_answered(client, site, mode, dest):
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
    assert client.get("/", headers=headers).status_code == 200
