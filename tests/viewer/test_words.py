"""The words of the pages: all of them in one catalogue, and on every page in another language once there is one."""

import asyncio
import re
from html.parser import HTMLParser

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from click.testing import CliRunner

from tests.strings import CATALOGUE, extract
from tests.viewer.audited import record_audited
from tests.viewer.example_runs import all_runs
from tests.viewer.fake_reader import FakeReader
from tests.viewer.served import client_of
from viewer import words
from viewer.present.audit.findings import SENTENCES
from viewer.present.sentence import Part, sentence
from viewer.serve import serve

SHOWN_ATTRIBUTES = ("aria-label", "placeholder", "title", "alt")
CONTENT_TAGS = ("bdi", "code", "pre", "time", "kbd", "option", "script", "style", "json-tree", "title", "progress")
"""What holds names, content and times; choices and the title of a page are values of runs,
and a measure is named as the limit beside it."""
CONTENT_CLASSES = "mono num kind hash crumbs tl-ticks clock status text node-name note tl-words".split()
"""Ids, figures, types of events, codes of errors, texts, nodes, and notes that names and messages are joined to."""
BLOCKS = "body div section p h1 h2 h3 li ul ol tr td th dt dd svg text summary label form nav title".split()
VOID = "area br col hr img input link meta wbr".split()
UNITS = frozenset("s ms min h kB MB GB bytes byte UTC EUR USD sha256".split())
NAMES = frozenset("Tachograph JSON A B U".split())
"""The product, the format, and the letters of two runs that are compared."""
LEDGER = frozenset(
    "Time Model Tool calls Input Output Total tokens Run Cost Repeated model tool guard graph run outcome attempts "
    "failures connection failed no evidence unhandled fallback repair Pass Error d all".split()
)
"""English words that the ledger shares with the command line: limits, reasons, what differs; and lengths of time."""
HOSTILE = frozenset("script window pwned".split())
"""A name of a hostile run, in what is read aloud of it."""
DIGEST = re.compile(r"\b[0-9a-f]{40,}\b")
PAGES_MAX = 40


class Untranslated(HTMLParser):
    """The words of a page that came from no message, in its text and in the attributes that people see or hear."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.hrefs: list[str] = []
        self._open: list[tuple[str, bool]] = []
        self._depth = 0

    def handle_starttag(self, tag, attrs):
        facts = dict(attrs)
        if tag == "a":
            self.hrefs.append(facts.get("href") or "")
        is_content = tag in CONTENT_TAGS or any(name in CONTENT_CLASSES for name in (facts.get("class") or "").split())
        if not self._is_in_content and not is_content:
            for name in SHOWN_ATTRIBUTES:
                self._take(facts.get(name) or "", 0)
        self._depth = 0 if tag in BLOCKS else self._depth
        if tag not in VOID:
            self._open.append((tag, is_content))

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass
        self._depth = 0 if tag in BLOCKS else self._depth

    def handle_data(self, data):
        if not self._is_in_content:
            self._depth = self._take(data, self._depth)

    @property
    def _is_in_content(self) -> bool:
        return any(is_content for _, is_content in self._open)

    def _take(self, text: str, depth: int) -> int:
        """Collect the words outside of the marks; how many marks are open behind the text."""
        outside = []
        for char in text:
            depth = max(depth + (char == "⟦") - (char == "⟧"), 0)
            outside.append(char if depth == 0 else " ")
        said = re.findall(r"[^\W\d_]\w*", DIGEST.sub("", "".join(outside)))
        self.found += [word for word in said if word not in UNITS | NAMES | LEDGER | HOSTILE]
        return depth


@pytest.fixture
def marked(tmp_path):
    """A language in which every message is its own English between marks, chosen as any other is."""
    with CATALOGUE.open(encoding="utf-8") as file:
        template = read_po(file)
    other = Catalog(locale="de")
    for message in template:
        if message.id:
            other.add(
                message.id, tuple(f"⟦{each}⟧" for each in message.id) if message.pluralizable else f"⟦{message.id}⟧"
            )
    folder = tmp_path / "locale/de/LC_MESSAGES"
    folder.mkdir(parents=True)
    with (folder / "tachograph.mo").open("wb") as file:
        write_mo(file, other)
    words.choose("de", tmp_path / "locale")
    yield
    words.choose(None)


MADE_UP = {"/style"}
"""What it shows stands for content of runs, in whatever part of a page content can stand."""


def crawled(client, *starts: str) -> dict[str, list[str]]:
    """The words that came from no message, by the page's address without what varies most."""
    found: dict[str, list[str]] = {}
    seen: set[str] = set()
    waiting = list(starts)
    while waiting and len(seen) < PAGES_MAX:
        path = waiting.pop(0).partition("#")[0]
        if path in seen or not path.startswith("/") or path.partition("?")[0] in MADE_UP:
            continue
        seen.add(path)
        answer = client.get(path, follow_redirects=True)
        if "html" not in answer.headers.get("content-type", ""):
            continue
        assert '<html lang="de"' in answer.text
        page = Untranslated()
        page.feed(answer.text)
        waiting += page.hrefs
        if page.found:
            found[path] = page.found
    return found


def test_the_catalogue_holds_what_the_sources_say(tmp_path):
    extract(tmp_path / "now.pot")
    assert (tmp_path / "now.pot").read_text() == CATALOGUE.read_text(), "make strings"


def test_every_sentence_that_is_said_of_a_bundle_has_words_and_none_has_them_in_vain():
    scripts = "\n".join(path.read_text() for path in (words.LOCALE.parent / "static/js/bundle").glob("*.js"))
    named = re.findall(r'(?:InvalidBundle|BadNote|said)\("(\w+)"|return "(\w+)";', scripts)
    named += re.findall(r'(?:require|BundleWrong)\(.*?"()(\w+)"(?:, \{[^;]*\})?\);', scripts, re.DOTALL)
    assert {one or other for one, other in named} == set(SENTENCES)


def test_every_page_of_runs_speaks_the_language_that_was_chosen(marked):
    starts = ["/", "/runs", "/sessions", "/login", "/nowhere", "/trace", "/compare?sessionA=s-42&runA=run-019ad3c1"]
    runs = [f"/trace?sessionId={run.session_id}&runId={run.run_id}" for run in all_runs()]
    with client_of(FakeReader(all_runs(), empty_sessions=["s-empty"])) as client:
        assert crawled(client, *starts, *runs) == {}


def test_every_audit_page_speaks_the_language_that_was_chosen(marked, tmp_path):
    asyncio.run(record_audited(tmp_path / "runs.db"))
    starts = ["/audit", "/audit/open", "/audit/verification", "/audit/runs?sessionId=s-1&runId=r-answered"]
    lists = [f"/audit?list={each}" for each in ("keys", "erasures", "retention", "restores", "tokens", "accesses")]
    with client_of(tmp_path / "runs.db") as client:
        assert crawled(client, *starts, *lists) == {}


def test_a_message_that_nobody_translated_stays_english(marked):
    assert words.gettext("Nobody ever said this of %(run)s.", run="a run") == "Nobody ever said this of a run."


def test_a_language_may_place_what_varies_elsewhere():
    parts = sentence("%(why)s: after %(time)s", time="4 s", why=[Part("tool", code=True), " failed"])
    assert parts == [Part("tool", code=True), " failed", ": after ", "4 s"]


def test_what_looks_like_a_place_in_content_is_content():
    assert sentence("said %(what)s.", what=Part("%(other)s", code=True)) == ["said ", Part("%(other)s", code=True), "."]


def test_a_server_refuses_a_language_that_it_does_not_have(tmp_path):
    done = CliRunner().invoke(serve, ["--db", str(tmp_path / "runs.db")], env={"TACHOGRAPH_LANGUAGE": "tlh"})
    assert done.exit_code == 2
    assert "no catalogue of the language tlh" in done.output
