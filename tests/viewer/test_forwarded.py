"""What a proxy says of a request is believed of named proxies only; from anybody else it changes nothing."""

import pytest
from starlette.responses import JSONResponse
from starlette.routing import Route

from harness.errors import InvalidInput
from tests.viewer.fake_reader import FakeReader
from tests.viewer.served import client_of
from viewer.app import create_app
from viewer.http.forwarded import TrustedProxies

SPOOFED = {
    "X-Forwarded-For": "203.0.113.9",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "ledger.example",
    "X-Forwarded-Prefix": "/evil",
    "X-Real-IP": "203.0.113.9",
    "Forwarded": "for=203.0.113.9;proto=https;host=ledger.example",
}


async def told(request):
    """What an endpoint is told of where its request came from."""
    says = [name for name in request.headers if "forward" in name or "real" in name]
    return JSONResponse(
        {
            "client": request.client.host,
            "scheme": request.url.scheme,
            "host": request.headers["host"],
            "root": request.scope["root_path"],
            "headers": says,
        }
    )


def viewer_behind(*proxies, **settings):
    return client_of(FakeReader(), extra_routes=[Route("/told", told)], trusted_proxies=proxies, **settings)


@pytest.mark.parametrize("proxies", [(), ("10.0.0.0/8", "::1"), ("unix",)], ids=["none", "others", "unix"])
def test_headers_of_anybody_else_change_nothing(proxies):
    with viewer_behind(*proxies, allowed_hosts=["127.0.0.1", "ledger.example"]) as client:
        plain = client.get("/told").json()
        assert client.get("/told", headers=SPOOFED).json() == plain
        assert (plain["client"], plain["scheme"], plain["headers"]) == ("127.0.0.1", "http", [])


def test_a_forwarded_host_of_anybody_else_opens_no_door():
    with viewer_behind("10.0.0.1", allowed_hosts=["ledger.example"]) as client:
        answer = client.get("/told", headers={"X-Forwarded-Host": "ledger.example"})
        assert answer.json()["code"] == "invalid_host"


def test_a_named_proxy_is_believed():
    with viewer_behind("127.0.0.0/8", allowed_hosts=["127.0.0.1", "ledger.example"]) as client:
        assert client.get("/told", headers=SPOOFED).json() == {
            "client": "203.0.113.9",
            "scheme": "https",
            "host": "ledger.example",
            "root": "",
            "headers": [],
        }


@pytest.mark.parametrize(
    ("host", "forwarded"),
    [
        ("127.0.0.1", "evil.example"),
        ("evil.example", "ledger.example"),  # a page that rebinds its name writes what it likes, but not this
        ("127.0.0.1", "ledger.example, evil.example"),
        ("127.0.0.1", "ledger.example/"),
        ("127.0.0.1", "ledger.example@evil.example"),
        ("127.0.0.1", "ledger.example evil"),
    ],
)
def test_behind_a_proxy_too_only_allowed_names_are_answered(host, forwarded):
    with viewer_behind("127.0.0.1", allowed_hosts=["127.0.0.1", "ledger.example"]) as client:
        answer = client.get("/told", headers={"Host": host, "X-Forwarded-Host": forwarded})
        assert (answer.status_code, answer.json().get("code")) == (400, "invalid_host")


def test_a_page_is_of_this_server_when_it_has_the_forwarded_host():
    forwarded = {"X-Forwarded-Host": "ledger.example:8443", "X-Forwarded-Proto": "https"}
    with viewer_behind("127.0.0.1", allowed_hosts=["127.0.0.1", "ledger.example"]) as client:
        for origin, code in (("https://ledger.example:8443", "read_only"), ("https://evil.example", "foreign_origin")):
            answer = client.post(
                "/api/feedback",
                json={"sessionId": "s-1", "runId": "r-1", "useful": True},
                headers={**forwarded, "Origin": origin},
            )
            assert answer.json()["code"] == code


@pytest.mark.parametrize(
    ("forwarded_for", "client"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("1.2.3.4, 203.0.113.9", "203.0.113.9"),  # the first was written by the client itself
        ("203.0.113.9, 10.1.1.1", "203.0.113.9"),
        ("203.0.113.9:4711, 10.1.1.1:80", "203.0.113.9"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("::ffff:10.1.1.1", "10.1.1.1"),
        ("10.1.1.1, 10.1.1.2", "10.1.1.1"),
        ("nonsense, 10.1.1.1", "10.1.1.1"),
        ("203.0.113.9, nonsense", None),
        ("", None),
        (", ".join(["203.0.113.9"] + ["10.1.1.1"] * 1_000), "10.1.1.1"),
    ],
)
def test_the_client_is_the_last_address_that_is_no_named_proxy(forwarded_for, client):
    assert TrustedProxies(["10.0.0.0/8"]).client_of(forwarded_for) == client


def test_of_several_values_the_nearest_proxy_wrote_the_last():
    with viewer_behind("127.0.0.1", allowed_hosts=["127.0.0.1", "ledger.example"]) as client:
        headers = [("X-Forwarded-Proto", "http"), ("X-Forwarded-Proto", "https")]
        assert client.get("/told", headers=headers).json()["scheme"] == "https"
        for value in ("https, http", "javascript", "HTTPS://", ""):
            assert client.get("/told", headers={"X-Forwarded-Proto": value}).json()["scheme"] == "http"


@pytest.mark.parametrize("name", ["*", "localhost", "10.0.0.1/8", "10.0.0.0/33", "", "unix:"])
def test_what_names_no_proxy_is_refused(name):
    with pytest.raises(InvalidInput, match="trusted proxy"):
        create_app(FakeReader(), trusted_proxies=[name])
