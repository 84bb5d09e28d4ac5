"""Light or dark, by choice: kept in a cookie, and nobody is led elsewhere."""

import httpx2
import pytest

from tests.viewer.fake_reader import FakeReader
from tests.viewer.served import client_of


@pytest.fixture
def here():
    with client_of(FakeReader()) as client:
        yield client


def choose(client: httpx2.Client, **fields: str) -> httpx2.Response:
    return client.post("/theme", data=fields)


def test_a_choice_is_kept_and_shown_without_any_script(here):
    assert "data-theme" not in here.get("/").text
    answer = choose(here, theme="dark", back="/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert all(flag in cookie for flag in ("httponly", "samesite=strict", "path=/"))
    assert '<html lang="en" data-theme="dark">' in here.get("/").text
    assert 'value="dark" aria-pressed="true"' in here.get("/").text


def test_a_choice_can_be_taken_back(here):
    choose(here, theme="light", back="/")
    choose(here, theme="", back="/")
    assert "data-theme" not in here.get("/").text


def test_a_cookie_that_we_did_not_set_changes_nothing(here):
    assert "data-theme" not in here.get("/", headers={"Cookie": 'tachograph_theme="><script>'}).text


def test_the_page_that_it_was_chosen_on_is_shown_again(here):
    assert choose(here, theme="dark", back="/runs?status=FAILED").headers["location"] == "/runs?status=FAILED"


@pytest.mark.parametrize(
    "back", ["//evil.example/", "/\\evil.example/", "https://evil.example/", "", "/a\r\nb: c", "javascript:x"]
)
def test_nobody_is_led_elsewhere(here, back):
    assert choose(here, theme="dark", back=back).headers["location"] == "/"


@pytest.mark.parametrize(
    ("content", "media_type", "status"),
    [
        (b"theme=pink", "application/x-www-form-urlencoded", 400),
        (b"theme=dark&theme=light", "application/x-www-form-urlencoded", 400),
        (b"\xff", "application/x-www-form-urlencoded", 400),
        (b"a=1&" * 30, "application/x-www-form-urlencoded", 400),
        (b"theme=dark", "text/plain", 415),
        (b"theme=" + b"x" * 70_000, "application/x-www-form-urlencoded", 413),
    ],
)
def test_what_is_no_choice_is_refused_and_kept_nowhere(here, content, media_type, status):
    answer = here.post("/theme", content=content, headers={"Content-Type": media_type})
    assert answer.status_code == status
    assert "set-cookie" not in answer.headers


def test_a_page_elsewhere_cannot_choose(here):
    answer = here.post("/theme", data={"theme": "dark"}, headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403
