"""Signing in with a link: once, into a cookie that nothing else can use, and what it takes to write with it."""

import asyncio
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from ledger import Ledger
from ledger.tokens.tokens import SESSION_TTL_S
from tests.ledger.scripted import ScriptedRun
from tests.viewer.guarded import guarded
from viewer.access import lasting
from viewer.access.guard import COOKIE

PROXY = ("127.0.0.1",)
RUN = {"sessionId": "s-1", "runId": "run-1"}


@pytest.fixture(scope="module")
def viewer(tmp_path_factory):
    with guarded(tmp_path_factory.mktemp("login") / "runs.db", trusted_proxies=PROXY) as viewer:
        yield viewer


def link(viewer, *rights, sessions=None):
    """The code of a link to sign in with."""
    token_id, _ = viewer.token(*rights, sessions=sessions)
    return token_id, viewer.do(lambda ledger: ledger.tokens.link(token_id))


def browser(viewer, **headers):
    """What says of itself what a browser says."""
    client = viewer.client()
    client.headers.update({"Origin": viewer.url, "Sec-Fetch-Site": "same-origin"} | headers)
    return client


def signed_in(viewer, *rights, sessions=None):
    token_id, code = link(viewer, *rights, sessions=sessions)
    client = browser(viewer)
    assert client.post("/login", data={"code": code}).status_code == 303
    return token_id, client


def word(client):
    (found,) = set(re.findall(r'name="csrf" value="([0-9a-f]{64})"', client.get("/trace", params=RUN).text))
    return found


def test_a_link_is_not_used_up_by_looking_at_it_and_needs_no_script(viewer):
    _, code = link(viewer)
    client = browser(viewer)
    for _ in range(2):
        page = client.get("/login", params={"code": code})
        assert page.status_code == 200
        assert "set-cookie" not in page.headers
        assert f'name="code" value="{code}"' in page.text
    assert client.post("/login", data={"code": code}).headers["location"] == "/"
    assert client.get("/trace", params=RUN).status_code == 200


def test_the_cookie_is_for_this_site_alone_and_no_script_reads_it(viewer):
    for proto, is_secure in (("http", False), ("https", True)):
        _, code = link(viewer)
        origin = viewer.url.replace("http", proto)
        client = browser(viewer, Origin=origin, **{"X-Forwarded-Proto": proto})
        cookie = client.post("/login", data={"code": code}).headers["set-cookie"]
        name, *flags = [part.strip().lower() for part in cookie.split(";")]
        assert name.startswith(f"{COOKIE}=")
        assert {"httponly", "samesite=strict", "path=/", f"max-age={SESSION_TTL_S}"} <= set(flags)
        assert ("secure" in flags) is is_secure


def test_below_a_sub_path_the_cookie_is_for_that_path(tmp_path):
    with guarded(tmp_path / "runs.db", root_path="/ledger") as viewer:
        _, code = link(viewer)
        answer = browser(viewer).post("/ledger/login", data={"code": code})
        assert answer.headers["location"] == "/ledger/"
        assert "; Path=/ledger/;" in f"{answer.headers['set-cookie']};"


def test_of_two_that_come_with_one_link_at_once_one_is_let_in(viewer):
    _, code = link(viewer)
    barrier = threading.Barrier(2)

    def enter(client):
        barrier.wait(30)
        return client.post("/login", data={"code": code}).status_code

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(enter, [browser(viewer), browser(viewer)])) == [303, 403]


def test_a_link_that_is_over_says_so_and_how_to_get_another(viewer):
    answer = browser(viewer).post("/login", data={"code": "x"})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    assert "tachograph token link" in answer.text


def test_people_without_a_token_are_told_how_to_sign_in(viewer):
    answer = viewer.client().get("/trace", params=RUN)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert "tachograph token link" in answer.text


def test_a_page_says_who_has_signed_in_and_he_signs_out_there(viewer):
    _, client = signed_in(viewer)
    page = client.get("/trace", params=RUN).text
    assert "<bdi>ops-1</bdi>" in page
    cookie = client.cookies[COOKIE]
    assert client.post("/logout", data={"csrf": word(client)}).headers["location"] == "/login"
    assert COOKIE not in client.cookies
    assert client.get("/trace", params=RUN, headers={"Cookie": f"{COOKIE}={cookie}"}).status_code == 401


def test_whoever_has_signed_in_stays_so_when_the_server_is_started_anew_until_the_token_is_revoked(tmp_path):
    with guarded(tmp_path / "runs.db") as viewer:
        token_id, client = signed_in(viewer)
        cookie = client.cookies[COOKIE]
    with guarded(tmp_path / "runs.db") as viewer:
        client = viewer.client()
        client.cookies.set(COOKIE, cookie)
        assert client.get("/trace", params=RUN).status_code == 200
        viewer.do(lambda ledger: ledger.tokens.revoke(token_id))
        assert client.get("/trace", params=RUN).status_code == 401


async def test_what_is_told_as_it_happens_ends_when_the_token_is_revoked(viewer, monkeypatch):
    monkeypatch.setattr(lasting, "ADMITTED_AGAIN_S", 0.05)
    token_id, signed = await asyncio.to_thread(signed_in, viewer, "read")
    async with await Ledger.open(viewer.file) as ledger, httpx2.AsyncClient(base_url=viewer.url, timeout=30) as client:
        started = ScriptedRun("run-3", "s-3", writer_id="w3").start()
        await asyncio.wrap_future(ledger.journal.submit(started))
        client.cookies.set(COOKIE, signed.cookies[COOKIE])
        live = "/api/diagnosis/s-3/runs/run-3/live"
        async with client.stream("GET", live) as answer:
            lines = answer.aiter_lines()
            while not (await anext(lines)).startswith("data"):
                pass
            await ledger.tokens.revoke(token_id)
            with pytest.raises(httpx2.RemoteProtocolError):
                _ = [line async for line in lines]
        assert (await client.get(live)).status_code == 401


def test_a_session_is_no_better_than_its_token(viewer):
    _, client = signed_in(viewer, "read", sessions="s-1")
    assert client.get("/trace", params=RUN).status_code == 200
    assert client.get("/trace", params={"sessionId": "s-2", "runId": "run-2"}).status_code == 404
    assert client.post("/trace/stop", params=RUN, data={"confirm": "yes", "csrf": word(client)}).status_code == 403


def test_a_form_is_taken_from_a_page_that_was_made_for_who_sends_it(viewer):
    _, client = signed_in(viewer)
    _, other = signed_in(viewer)
    form = {"useful": "yes", "comment": "thanks"}
    for csrf in ({}, {"csrf": ""}, {"csrf": "é"}, {"csrf": word(other)}):
        refused = client.post("/trace/feedback", params=RUN, data=form | csrf)
        assert refused.status_code == 403, csrf
        assert "foreign_form" in refused.text
    assert client.post("/trace/feedback", params=RUN, data=form | {"csrf": word(client)}).status_code == 303
    feedback = client.get("/api/diagnosis/s-1/trace", params={"runId": "run-1"}).json()["data"]["feedback"]
    assert feedback["useful"] is True


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data; boundary=x"])
def test_no_other_form_that_a_page_elsewhere_could_send_is_taken(viewer, kind):
    _, client = signed_in(viewer)
    answer = client.post("/api/diagnosis/s-1/runs/run-1/cancel", content=b"", headers={"Content-Type": kind})
    assert answer.json()["code"] == "foreign_form"


def test_what_is_sent_with_a_cookie_says_where_it_comes_from_and_with_a_token_it_need_not(viewer):
    _, client = signed_in(viewer)
    body = {**RUN, "useful": False}
    assert client.post("/api/feedback", json=body).status_code == 200
    for name in ("Origin", "Sec-Fetch-Site"):
        del client.headers[name]
    assert client.post("/api/feedback", json=body).json()["code"] == "foreign_form"
    assert viewer.holder().post("/api/feedback", json=body).status_code == 200
    for origin in ("http://elsewhere.example", "null", "", viewer.url.replace("http", "ftp"), f"{viewer.url}0"):
        client.headers["Origin"] = origin
        assert client.post("/api/feedback", json=body).json()["code"] == "foreign_origin", origin


def test_a_page_that_came_without_tls_is_none_of_a_server_that_has_it(viewer):
    secure = viewer.url.replace("http", "https")
    for proto, origin, status in (("https", viewer.url, 403), ("https", secure, 303), ("http", secure, 303)):
        client = browser(viewer, Origin=origin, **{"X-Forwarded-Proto": proto})
        assert client.post("/theme", data={"theme": "dark"}).status_code == status


def test_without_tokens_there_is_nothing_to_sign_in_to_and_forms_need_no_word(tmp_path):
    with guarded(tmp_path / "runs.db") as viewer:
        client = browser(viewer)
        assert 'name="csrf"' not in client.get("/trace", params=RUN).text
        assert client.post("/trace/feedback", params=RUN, data={"useful": "no"}).status_code == 303
        assert client.post("/login", data={"code": "x"}).status_code == 403
