"""Served below a sub-path, every address stays below it, whether the proxy takes the sub-path off or not."""

import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

import viewer
from harness.errors import InvalidInput
from tests.viewer.example_runs import all_runs
from tests.viewer.fake_reader import FakeReader
from tests.viewer.served import client_of
from viewer.app import create_app

ROOT_PATH = "/tools/ledger"
SAME_KIND_MAX = 2
"""Answers that are looked at of each path with each parameter."""
SCRIPTS = Path(viewer.__file__).parent / "static" / "js"


@pytest.fixture(scope="module", params=["kept", "taken off"])
def crawl(request):
    """The answers of all that the pages lead to, by address, as a browser behind the proxy sees them."""
    with client_of(FakeReader(all_runs()), root_path=ROOT_PATH) as client:
        found = {}
        kinds = Counter()
        waiting = [f"{ROOT_PATH}/"]
        while waiting:
            address = waiting.pop()
            parts = urlsplit(address)
            path = re.sub(r"/(s|run|r)-[^/]*", "/id", parts.path)
            of_kind = [(path, name) for name, _ in [*parse_qsl(parts.query), ("", "")]]
            is_new = any(kinds[kind] < SAME_KIND_MAX for kind in of_kind)
            if address in found or not is_new or path.endswith("/live"):
                continue
            kinds.update(of_kind)
            asked = address if request.param == "kept" else address.removeprefix(ROOT_PATH)
            found[address] = answer = client.get(asked)
            waiting += [
                link.partition("#")[0]
                for name, link in addresses_in(answer)
                # Where a form leads depends on what is filled in.
                if link.startswith(f"{ROOT_PATH}/") and name not in ("action", "formaction")
            ]
        yield found


class Addresses(HTMLParser):
    """Collects what the attributes of a page point at."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            is_given = name in ("href", "src", "action", "formaction", "poster", "srcset")
            if is_given or (name.startswith("data-") and re.match(r"/\w", value or "")):
                self.found.append((name, value))


def addresses_in(answer):
    """What an answer points at, each with the name of what does."""
    kind = answer.headers.get("content-type", "")
    found = [("link", link) for link in re.findall(r"<([^>]*)>", answer.headers.get("link", ""))]
    if "location" in answer.headers:
        found.append(("location", answer.headers["location"]))
    if kind.startswith("text/html"):
        parser = Addresses()
        parser.feed(answer.text)
        found += parser.found
    elif kind.startswith("text/css"):
        found += [("url", link) for link in re.findall(r"url\(['\"]?([^'\")]*)", answer.text)]
    return found


def test_no_address_leaves_the_sub_path(crawl):
    led_out = {
        link: address
        for address, answer in crawl.items()
        for _, link in addresses_in(answer)
        if not link.startswith((f"{ROOT_PATH}/", "#", "?", "data:"))
    }
    assert led_out == {}


def test_all_that_pages_lead_to_is_there(crawl):
    assert {address: answer.status_code for address, answer in crawl.items() if answer.status_code >= 400} == {}
    kinds = {answer.headers.get("content-type", "").partition(";")[0] for answer in crawl.values()}
    assert kinds >= {"text/html", "text/css", "application/json", "text/javascript", "image/svg+xml"}


def test_no_cookie_reaches_further_than_the_sub_path(crawl):
    cookies = [cookie for answer in crawl.values() for cookie in answer.headers.get_list("set-cookie")]
    assert [cookie for cookie in cookies if f"path={ROOT_PATH}" not in cookie.lower()] == []


def test_scripts_take_their_addresses_from_the_page():
    addresses = re.compile(r"""["'`](/[A-Za-z][^"'`]*)""")
    sources = {path.name: re.sub(r"(?m)^\s*//.*$", "", path.read_text()) for path in SCRIPTS.rglob("*.js")}
    found = {name: addresses.findall(text) for name, text in sources.items()}
    assert {name: links for name, links in found.items() if links} == {}
    for text in sources.values():
        imported = re.findall(r"""\b(?:from|import)\s*\(?\s*["']([^"']+)""", text)
        assert [name for name in imported if not name.startswith("./") and not name.startswith("../")] == []


@pytest.mark.parametrize("prefix", [ROOT_PATH, ""])
def test_what_fails_below_the_sub_path_is_told_in_the_same_form(prefix):
    with client_of(FakeReader(all_runs()), root_path=ROOT_PATH) as client:
        assert client.get(f"{prefix}/api/nothing").json()["code"] == "not_found"
        page = client.get(f"{prefix}/nothing")
        assert (page.status_code, f'href="{ROOT_PATH}/"' in page.text) == (404, True)
        assert client.get(f"{prefix}/trace/").status_code == 404


def test_the_sub_path_without_its_slash_is_the_home_page():
    with client_of(FakeReader(all_runs()), root_path=ROOT_PATH) as client:
        assert client.get(ROOT_PATH).text == client.get(f"{ROOT_PATH}/").text
        assert client.get(f"{ROOT_PATH}x/").status_code == 404


def test_a_list_goes_on_below_the_sub_path():
    with client_of(FakeReader(all_runs()), root_path=ROOT_PATH) as client:
        for asked in (f"{ROOT_PATH}/api/chat/session/s-42/runs?limit=1", "/api/chat/session/s-42/runs?limit=1"):
            link = client.get(asked).headers["link"]
            assert link.startswith(f"<{ROOT_PATH}/api/chat/session/s-42/runs?")


@pytest.mark.parametrize(
    ("back", "leads_to"),
    [
        ("/tools/ledger/runs?text=..", "/tools/ledger/runs?text=.."),
        ("/elsewhere", "/tools/ledger/"),
        ("/tools/ledger/../elsewhere", "/tools/ledger/"),
        ("/tools/ledger/%2e%2E/elsewhere", "/tools/ledger/"),
    ],
)
def test_a_choice_that_is_kept_is_kept_and_leads_back_below_the_sub_path(back, leads_to):
    with client_of(FakeReader(), root_path=ROOT_PATH) as client:
        answer = client.post(f"{ROOT_PATH}/theme", data={"theme": "dark", "back": back}, follow_redirects=False)
        assert answer.headers["location"] == leads_to
        assert f"path={ROOT_PATH}/" in answer.headers["set-cookie"].lower()


@pytest.mark.parametrize(
    "root_path",
    ["ledger", "/ledger/", "/", "//evil.example", "/a//b", "/..", "/a/../b", "/a b", '/"', "/é", "/" + "a" * 200],
)
def test_a_sub_path_that_could_be_read_in_two_ways_is_refused(root_path):
    with pytest.raises(InvalidInput, match="must look like /ledger"):
        create_app(FakeReader(), root_path=root_path)


@pytest.mark.parametrize("root_path", ["/trace", "/api", "/static/ledger", "/sessions"])
def test_a_sub_path_that_hides_the_viewers_own_addresses_is_refused(root_path):
    with pytest.raises(InvalidInput, match="an address of the viewer's own"):
        create_app(FakeReader(), root_path=root_path)


def test_json_holds_no_address_but_in_its_headers(crawl):
    """So a program need not know what it is served behind."""
    for answer in crawl.values():
        if answer.headers.get("content-type", "").startswith("application/json"):
            assert not re.search(r'"(/tools/ledger|/api/|/trace)', json.dumps(answer.json()))
