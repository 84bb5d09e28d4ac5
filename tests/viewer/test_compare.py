"""Two runs side by side: the verdict, the figures, and every boundary."""

import asyncio
import re
from collections.abc import Iterator
from html import unescape

import httpx2
import pytest

from tests.viewer.compared import LONG, record_compared
from tests.viewer.served import client_of


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> Iterator[httpx2.Client]:
    path = tmp_path_factory.mktemp("compared") / "runs.db"
    asyncio.run(record_compared(path))
    with client_of(path) as client:
        yield client


def address(b: str, a: str = "r-first", session_a: str = "s-1", session_b: str = "s-1", api: bool = False) -> str:
    path = "/api/diagnosis/compare" if api else "/compare"
    return f"{path}?sessionA={session_a}&runA={a}&sessionB={session_b}&runB={b}"


def verdict(client, b: str) -> str:
    found = re.search(r'<h1 class="plain" id="verdict">(.*?)</h1>', client.get(address(b)).text, re.DOTALL)
    assert found is not None
    return re.sub(r"\s+", " ", unescape(re.sub("<[^>]+>", "", found[1])))


def test_runs_of_one_course_are_told_by_what_the_second_used(client):
    said = verdict(client, "r-again")
    assert "Same course, with other contents at 1 boundary; first the output of composer.2 · composer." in said
    assert "The second took 1.20 s longer and used 310 tokens more." in said


def test_what_was_not_reported_is_no_difference_that_could_be_told(client):  # H4a, CASES 9
    assert "The second" not in verdict(client, "r-unreported")
    text = re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", client.get(address("r-unreported")).text))
    assert "Total tokens 240 ≥ 120 –" in text
    assert "Attempts whose tokens are unknown 0 1 +1" in text
    data = client.get(address("r-unreported", api=True)).json()["data"]
    assert (data["a"]["usageUnknownCount"], data["b"]["usageUnknownCount"]) == (0, 1)


def test_runs_that_part_are_told_by_where(client):
    assert "They part at executor.1 · query_metrics: only the first run has it." in verdict(client, "r-other")


def test_a_run_is_the_same_as_itself(client):
    assert "Alike" in verdict(client, "r-first")
    assert "Both are the same run." in verdict(client, "r-first")


def test_what_cannot_be_told_since_it_was_erased_is_said(client):
    said = verdict(client, "r-erased")
    assert re.search(r"Of \d+ contents it cannot be told", said)
    assert "erased or damaged on one side" in client.get(address("r-erased") + "&show=all").text


def test_stretches_that_are_alike_are_folded_and_counted(client):
    text = client.get(address("r-again")).text
    assert re.search(r'class="folded"><td colspan="6">\d+ boundaries', text)
    everything = client.get(address("r-again") + "&show=all").text
    assert 'class="folded"' not in everything
    assert everything.count("<tr class=") > text.count("<tr class=")


def test_only_differences_are_shown_where_the_address_says_so(client):
    text = client.get(address("r-again") + "&show=differences").text
    assert set(re.findall(r'<tr class="(\w+)">', text)) == {"different", "unknown"}
    assert client.get(address("r-again") + "&show=nothing").status_code == 400


def test_each_boundary_leads_to_its_event_in_both_traces(client):
    text = client.get(address("r-again") + "&show=all").text
    href = re.search(r'href="(/trace\?sessionId=s-1&amp;runId=r-again&amp;event=\d+&amp;view=events)#e\d+"', text)
    assert href is not None
    assert client.get(href[1].replace("&amp;", "&")).status_code == 200


def test_a_long_comparison_comes_by_page(client):
    text = client.get(address("r-long", session_b="s-2")).text
    following = re.search(r'rel="next" href="([^"]+)"', text)
    assert following is not None
    later = client.get(following[1].replace("&amp;", "&").partition("#")[0]).text
    assert 'rel="prev"' in later
    assert text.count('<tr class="only_b">') + later.count('<tr class="only_b">') >= LONG


def test_the_json_twin_says_the_same(client):
    data = client.get(address("r-again", api=True)).json()["data"]
    assert data["elapsedUs"]["b"] - data["elapsedUs"]["a"] == 1_200_000
    assert data["usage"]["total_tokens"] == {"a": 240, "b": 550}
    assert {each["sign"] for each in data["boundaries"]} == {"same", "different"}
    other = client.get(address("r-other", api=True)).json()["data"]
    assert not other["same"]
    assert other["counts"]["onlyA"] > 0


@pytest.mark.parametrize("api", [False, True])
def test_a_foreign_run_and_an_unknown_one_get_the_same_answer(client, api):  # SPEC R4
    foreign = client.get(address("r-long", api=api))
    unknown = client.get(address("r-nowhere", api=api))
    first = client.get(address("r-first", a="r-long", api=api))
    assert foreign.status_code == unknown.status_code == first.status_code == 404
    assert foreign.text == unknown.text == first.text


def test_no_run_is_inferred(client):  # SPEC R4
    assert client.get("/compare?sessionA=s-1").status_code == 400
    assert client.get("/compare?sessionA=s-1&runA=r-first&runB=r-again").status_code == 400
    assert client.get("/api/diagnosis/compare?sessionA=s-1&runA=r-first").status_code == 400


def test_while_one_run_is_named_the_others_of_its_session_are_offered(client):
    text = client.get("/compare?sessionA=s-1&runA=r-first").text
    offered = re.findall(r'class="question" href="([^"]+)"', text)
    assert len(offered) == 4
    assert all("runA=r-first" in href for href in offered)
    assert client.get(offered[0].replace("&amp;", "&")).status_code == 200
    assert client.get("/compare?sessionA=s-1&runA=r-nowhere").status_code == 404


def test_another_run_may_be_entered_as_session_and_run(client):
    answer = client.get("/compare?sessionA=s-1&runA=r-first&with=s-2/r-long")
    assert (answer.status_code, answer.headers["location"]) == (
        303,
        "/compare?sessionA=s-1&runA=r-first&sessionB=s-2&runB=r-long",
    )
    assert client.get("/compare?sessionA=s-1&runA=r-first&with=r-long").status_code == 400


def test_hostile_names_are_text(client):  # CASES 46
    text = client.get(address("r-other")).text
    assert "<i>restart" not in text
    assert "&lt;i&gt;restart" in text
