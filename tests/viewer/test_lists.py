"""Home, the lists of runs and sessions, and the form that narrows them, over a ledger that real runs made."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest

from ledger.lists import AgentTally, RunValues, Spend, Tallies
from tests.viewer.served import client_of
from viewer.present.lists.agents import agent_rows, summary
from viewer.present.lists.filters import NAMES, filter_form, page_address
from viewer.site import Site

NO_VALUES = RunValues((), (), (), (), (), (), (), (), is_cut=False)


class Links(HTMLParser):
    """Where the links of a page lead, with their words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self._href: str | None = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self._href = dict(attrs).get("href")
            self.found.append((self._href or "", ""))

    def handle_data(self, data):
        if self._href is not None:
            href, words = self.found[-1]
            self.found[-1] = (href, words + data)

    def handle_endtag(self, tag):
        if tag == "a":
            self._href = None

    def to(self, words: str) -> str:
        return next(href for href, said in self.found if " ".join(said.split()) == words)


@pytest.fixture(scope="module")
def here(recorded_runs) -> Iterator[httpx2.Client]:
    with client_of(recorded_runs) as client:
        yield client


def listed(page: str) -> list[str]:
    """The runs that a page lists, in their order."""
    found = [href for href, _ in Links(page).found if href.startswith("/trace?")]
    return list(dict.fromkeys(dict(parse_qsl(urlsplit(href).query))["runId"] for href in found))


def read(client: httpx2.Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


def test_home_says_in_one_sentence_how_it_stands_and_names_what_needs_attention_first(here):
    page = read(here, "/?window=all")
    assert "Nothing is running now. In all: 3 succeeded, 1 cancelled, 1 failed, 1 timed out, 1 out of budget." in page
    assert page.index("Look at these first") < page.index("By agent") < page.index("Ended lately")
    assert listed(page)[:3] == ["r-failed", "r-budget", "r-timed-out"]


def test_home_looks_no_further_back_than_it_is_asked_to(here):
    # The runs are of a clock that stands in 2027; nothing of theirs is older than an hour, and a window begins in time.
    assert "In all" not in read(here, "/?window=1h")
    assert here.get("/?window=2h").status_code == 400


def test_home_and_its_twin_add_up_alike(here):
    body = here.get("/api/diagnosis/overview?window=all").json()["data"]
    assert (body["runCount"], body["cut"], len(body["agents"])) == (7, False, 2)
    triage = next(each for each in body["agents"] if each["agent"] == "triage")
    assert triage["byStatus"]["BUDGET_EXHAUSTED"] == 1
    assert [each["reason"] for each in body["attention"]] == ["failed", "budget_exhausted", "timed_out"]


@pytest.mark.parametrize(
    ("query", "run_ids"),
    [
        ("status=FAILED&status=CANCELLED", ["r-cancelled", "r-failed"]),
        ("actor=on-call", ["r-answered"]),
        ("label=team%3Dops", ["r-answered"]),
        ("tool=open_ticket", ["r-answered"]),
        ("reason=UNHANDLED_EXCEPTION", ["r-failed"]),
        ("feedback=useful", ["r-answered"]),
        ("sessionId=s-4", ["r-astray"]),
        ("without=environment&status=FAILED", ["r-failed"]),
        ("without=agent&without=agentVersion", []),
        (
            "agent=triage&status=&tool=",
            ["r-astray", "r-timed-out", "r-cancelled", "r-failed", "r-budget", "r-answered"],
        ),
        ("environment=nowhere", []),
        ("text=import", ["r-budget"]),
        ("text=%22disk+is+full%22", ["r-answered"]),
        ("text=deploy+OR", []),
    ],
)
def test_a_list_shows_the_runs_that_fit_and_its_twin_the_same(here, query, run_ids):
    page = read(here, f"/runs?{query}")
    assert listed(page) == run_ids
    twin = Links(page).to("JSON")
    assert [run["runId"] for run in here.get(twin).json()["data"]] == run_ids
    if not run_ids:
        assert "No run fits these conditions." in page


def test_each_condition_is_shown_and_can_be_taken_back(here):
    page = read(here, "/runs?status=FAILED&agent=triage")
    links = Links(page)
    assert listed(read(here, links.to("outcome Failed ×"))) == listed(read(here, "/runs?agent=triage"))
    assert links.to("agent triage ×") == "/runs?status=FAILED"
    assert links.to("Clear all") == "/runs"
    assert re.search(r'value="FAILED" checked', page)
    assert '<option value="triage" selected>' in page


@pytest.mark.parametrize(
    "query",
    [
        "status=LOST",
        "from=yesterday",
        "label=x",
        "label=a%3D1&label=a%3D2",
        "cursor=0",
        "status=FAILED&agent=a&agent=b",
    ],
)
def test_a_condition_that_cannot_be_is_refused_and_named(here, query):
    answer = here.get(f"/runs?{query}")
    assert answer.status_code == 400
    assert answer.headers["content-type"].startswith("text/html")


def test_a_session_lists_its_own_runs_alone_whatever_the_address_says(here):
    assert set(listed(read(here, "/sessions/s-2"))) == {"r-failed", "r-cancelled", "r-timed-out"}
    assert listed(read(here, "/sessions/s-2?sessionId=s-1&status=FAILED")) == ["r-failed"]
    assert here.get("/sessions/s-9").status_code == 404


def test_sessions_are_listed_with_their_newest_run(here):
    page = read(here, "/sessions")
    found = [href for href, _ in Links(page).found if href.startswith("/sessions/")]
    assert found == ["/sessions/s-4", "/sessions/s-3", "/sessions/s-2", "/sessions/s-1", "/sessions/s-empty"]
    assert "s-empty" in read(here, "/sessions?sessionPrefix=s-e")
    assert "No session's id begins so." in read(here, "/sessions?sessionPrefix=x")


def test_a_ledger_without_runs_says_so_on_every_page(tmp_path):
    async def blank() -> None:
        from ledger import Ledger

        async with await Ledger.open(tmp_path / "blank.db"):
            pass

    asyncio.run(blank())
    with client_of(tmp_path / "blank.db") as client:
        assert "No run was started within 24 hours." in read(client, "/")
        assert "No run is recorded yet." in read(client, "/runs")
        assert "No session is recorded yet." in read(client, "/sessions")


def tally(name: str, newest_us: int = 0, **by_status: int) -> AgentTally:
    spends = (
        Spend("tool:query_logs", False, 6, 0, 1.5, 2),
        Spend("model_calls", False, 3, 0, 0.81, 2),
        Spend("tool_calls", False, 0, 0, 0.0, 2),
    )
    return AgentTally(name, "1", sum(by_status.values()), by_status, 0, {}, 0, spends, {"USD": 720}, {}, newest_us)


def tallies(*found: AgentTally, is_cut: bool = False) -> Tallies:
    return Tallies(found, (), sum(each.run_count for each in found), is_cut)


def test_the_agent_with_the_largest_share_of_failures_comes_first():
    found = tallies(
        tally("calm", 9, SUCCESS=9, FAILED=1), tally("ill", 1, SUCCESS=1, TIMED_OUT=1), tally("new", 5, SUCCESS=1)
    )
    assert [row.tally.agent for row in agent_rows(found)] == ["ill", "calm", "new"]


def test_the_bar_of_outcomes_is_whole_and_an_unknown_outcome_is_in_it():
    (row,) = agent_rows(tallies(tally("a", SUCCESS=1, RUNNING=1, NEW_KIND=1)))
    assert [share.words for share in row.shares] == ["1 succeeded", "1 running", "1 new kind"]
    assert row.shares[-1].x + row.shares[-1].width == pytest.approx(100, abs=0.02)


def test_a_limit_that_was_passed_stands_out_and_one_that_was_not_used_is_left_out():
    (row,) = agent_rows(tallies(tally("a", SUCCESS=1)))
    assert [(spend.label, spend.percent, spend.tone) for spend in row.spends] == [
        ("query_logs", 150, "bad"),
        ("Model calls", 81, "high"),
    ]


def test_what_is_not_known_of_all_attempts_is_never_told_as_all_of_it():  # H4a, CASES 9
    spends = (Spend("input_tokens", False, 1_200, 1, 0.5, 2), Spend("output_tokens", False, 0, 1, 0.0, 2))
    costs = {"cost_micros": {"USD": 720, "EUR": 5}, "cost_unknown": {"USD": 2, "CHF": 1}}
    (row,) = agent_rows(tallies(replace(tally("a", SUCCESS=2), spends=spends, **costs)))
    assert [(spend.share, spend.used) for spend in row.spends] == [("≥ 50 %", "≥ 1,200"), ("unknown", "unknown")]
    assert row.costs == ("≥ 0.00072 USD", "0.000005 EUR", "unknown CHF")


def test_a_limit_that_was_passed_by_a_hair_stands_out_too():
    (row,) = agent_rows(tallies(replace(tally("a", SUCCESS=1), spends=(passed(by_a_hair=True),))))
    assert row.spends[0].tone == "bad"


def passed(*, by_a_hair: bool = False, is_observed: bool = False) -> Spend:
    return Spend("total_tokens", is_observed, 1_001, 0, 1.001 if by_a_hair else 2.0, 1)


def test_a_limit_that_is_only_observed_is_never_shown_as_one_that_was_broken():  # D13
    spends = (passed(is_observed=True), passed(), replace(passed(is_observed=True), highest_share=0.9))
    (row,) = agent_rows(tallies(replace(tally("a", SUCCESS=1), spends=spends)))
    assert [(spend.tone, spend.is_observed) for spend in row.spends] == [("passed", True), ("bad", False), ("", True)]


def test_an_agent_leads_to_the_runs_of_exactly_its_version_and_one_without_to_those_without():
    site = Site("/root")
    assert site.runs_of("a b", "1.4") == "/root/runs?agent=a+b&agentVersion=1.4"
    assert site.runs_of("a", None) == "/root/runs?agent=a&without=agentVersion"
    assert site.runs_of(None, None) == "/root/runs?without=agent&without=agentVersion"
    assert site.runs_of(None, "2") == "/root/runs?without=agent&agentVersion=2"


def test_what_was_not_added_up_is_said():
    assert summary(tallies(tally("a", SUCCESS=2), is_cut=True), "in all").endswith("Only the newest 2 are added up.")
    assert summary(tallies(), "within 7 days") == "No run was started within 7 days."


def test_what_the_address_asks_for_is_offered_though_no_recent_run_has_it():
    form = filter_form([("agent", "rare"), ("cursor", "x"), ("unknown", "y"), ("tool", "")], NO_VALUES, str)
    (agent,) = (field for field in form.fields if field.key == "agent")
    assert [(choice.value, choice.chosen) for choice in agent.choices] == [("rare", True)]
    assert [(chip.name, chip.value, chip.without) for chip in form.chips] == [(NAMES["agent"], "rare", "")]


def test_another_page_keeps_every_condition():
    query = [("status", "FAILED"), ("status", "CANCELLED"), ("cursor", "old")]
    assert page_address(query, str, "new") == "status=FAILED&status=CANCELLED&cursor=new"
    assert page_address(query, str, None) == "status=FAILED&status=CANCELLED"
