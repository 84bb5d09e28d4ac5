"""What the address of a trace page asks for and the run does not have; and the run's answer on that page."""

import re

import pytest

from tests.viewer.example_runs import LIMITS
from tests.viewer.fake_reader import FakeReader
from tests.viewer.fake_run import FakeRun, content
from tests.viewer.served import client_of
from tests.viewer.test_pages import PAGE, read


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("event=999", "There is no event 999: the run has 44 events."),
        ("event=0", "There is no event 0: the run has 44 events."),
        ("after=44", "There is no event after number 44: the run has 44."),
        ("steps=50", "There is no model step after number 50: the run has 3."),
        ("tools=9000", "There is no tool call after number 9,000: the run has 6."),
        ("content=tool-99-output", "The run has no content tool-99-output."),
        ("content=answer", "The run has no content answer."),
        ("content=tool-1-output&offset=99999", "none behind byte 99,999."),
    ],
)
def test_an_address_that_leads_nowhere_is_told_so(client, asked, said):
    text = read(client, f"{PAGE}&{asked}").text
    assert said in text
    assert text.count("There is no") + text.count("The run has no") + text.count("none behind") == 1
    for start, end in re.findall(r"Showing (?:bytes )?([\d,]+)–([\d,]+)", text):
        assert int(start.replace(",", "")) <= int(end.replace(",", ""))


def test_an_address_that_leads_somewhere_is_told_nothing(client):
    for asked in ("event=44&after=43", "content=tool-1-output", "steps=2&tools=5"):
        assert 'class="panel notices"' not in client.get(f"{PAGE}&{asked}").text


def answered(text):
    run = FakeRun("s", "r", "q", dict(LIMITS)).start()
    run.answer = content(text)
    return FakeReader([run])


def test_an_answer_is_on_the_page_as_a_whole():
    with client_of(answered("word " * 1_500 + "end of it")) as client:
        assert "end of it" in read(client, "/trace?sessionId=s&runId=r").text


@pytest.mark.parametrize(("lines", "offered"), [(10, False), (27, True)])
def test_a_long_answer_can_be_opened_to_its_end(lines, offered):
    with client_of(answered("a line\n" * lines)) as client:
        assert ("<summary>Show all</summary>" in client.get("/trace?sessionId=s&runId=r").text) is offered


def test_code_in_an_answer_is_set_as_code_and_stays_inert():
    with client_of(answered("see `<img src=x>\x1b` and `kern.log`, not `this\none`")) as client:
        page = client.get("/trace?sessionId=s&runId=r").text
    assert "<code>&lt;img src=x&gt;<span" in page
    assert "‹ESC›</span></code>" in page
    assert "<code>kern.log</code>, not `this\none`" in page
