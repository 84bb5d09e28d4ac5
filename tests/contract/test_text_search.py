"""Runs found by what their question, answer and error message say; erased words find nothing (E10, D19)."""

from __future__ import annotations

import random

import pytest

from harness.errors import InvalidInput
from ledger.run_filter import RunFilter
from ledger.texts import INDEXED_BYTES, terms_of, words_in
from tests.ledger.scripted import ScriptedRun, seal

WORDS = ("disk", "disks", "full", "host-7", "Größe", "ok", "don't", "数据库", "a_b", "1e5", "AND", "NEAR", "10.0.0.7")


def record(ledger, run_id, question, answer=None, error=None, session_id="session-1"):
    run, sealed = ScriptedRun(run_id, session_id), seal(question)
    start = run.start()
    event = start.events[0].model_copy(update={"query_digest": sealed.digest, "query_bytes": sealed.size_bytes})
    ledger.journal.submit(start._replace(events=(event,), contents=(sealed,))).result()
    if error is not None:
        sealed = seal(error)
        said = {"error_digest": sealed.digest, "error_bytes": sealed.size_bytes, "error_stored": True}
        end = run.end("FAILED", "ERROR", error_type="Exception", **said)
        ledger.journal.submit(end._replace(contents=(sealed,))).result()
    elif answer is not None:
        ledger.journal.submit(run.answer(answer)).result()
        ledger.journal.submit(run.end()).result()


async def found(ledger, text, **conditions):
    page = await ledger.reader.runs(RunFilter(text=text, **conditions), limit=500)
    return {run.run_id for run in page.rows}


@pytest.fixture
async def recorded(ledger):
    record(ledger, "question", "Why is the disk of host-7 full?")
    record(ledger, "answer", "What now?", "The disk was replaced, don't worry.")
    record(ledger, "error", "What now?", error="ConnectionError: 10.0.0.7 refused", session_id="session-2")
    record(ledger, "other", "数据库 的 Größe")
    return ledger


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("disk", {"question", "answer"}),
        ("DISK", {"question", "answer"}),
        ("disk full", {"question"}),
        ("full disk", {"question"}),
        ('"full disk"', set()),
        ('"disk of host"', {"question"}),
        ("host-7", {"question"}),
        ("7-host", set()),
        ("repl*", {"answer"}),
        ("repl", set()),
        ('"was repl"*', {"answer"}),
        ("don't", {"answer"}),
        ("10.0.0.7", {"error"}),
        ("connectionerror", {"error"}),
        ("what disk", {"answer"}),
        ("数据", {"other"}),
        ("据数", set()),
        ("GRÖSSE", {"other"}),
        ("größ*", {"other"}),
        ('now "', {"answer", "error"}),
        ("disk OR full", set()),
        ("disk NOT", set()),
        ("disk AND(", set()),
        ("run_id:disk", set()),
        ("^disk", {"question", "answer"}),
        ("disk' | 'now", {"answer"}),
    ],
)
async def test_a_search_finds_the_runs_that_have_all_its_words(recorded, text, runs):
    assert await found(recorded, text) == runs


async def test_a_search_goes_with_other_conditions_and_in_pages(recorded):
    assert await found(recorded, "what now", session_id="session-2") == {"error"}
    assert await found(recorded, "what now", status=("SUCCESS",)) == {"answer"}
    first = await recorded.reader.runs(RunFilter(text="now"), limit=1)
    second = await recorded.reader.runs(RunFilter(text="now"), limit=1, cursor=first.next_cursor)
    assert {first.rows[0].run_id, second.rows[0].run_id} == {"answer", "error"}
    assert second.next_cursor is None


def model(text, search):
    words = list(words_in(text))
    for term in terms_of(search):
        size = len(term.words)
        places = [words[at : at + size] for at in range(len(words) - size + 1)]
        if not any(_is_at(term, place) for place in places):
            return False
    return True


def _is_at(term, place):
    if not term.is_prefix:
        return tuple(place) == term.words
    return tuple(place[:-1]) == term.words[:-1] and place[-1].startswith(term.words[-1])


async def test_random_searches_find_what_plain_python_finds(ledger):
    draw = random.Random(7)
    texts = {f"run-{number}": " ".join(draw.choices(WORDS, k=6)) for number in range(30)}
    for run_id, text in texts.items():
        record(ledger, run_id, text)
    for _ in range(150):
        words = draw.choices(WORDS, k=draw.randint(1, 3))
        search = draw.choice(("{}", '"{}"', "{}*", '"{}"*', '({}) "', "{}:'", "-{}")).format(" ".join(words))
        wanted = {run_id for run_id, text in texts.items() if model(text, search)}
        assert await found(ledger, search) == wanted, search


async def test_of_a_long_text_the_beginning_is_searched_packed_or_not(ledger):
    record(ledger, "long", "first " + "padding " * INDEXED_BYTES + "last", "short")
    assert await found(ledger, "first short") == {"long"}
    assert await found(ledger, "last") == set()


async def test_what_was_erased_is_not_found_and_the_rest_still_is(ledger):
    record(ledger, "run-1", "Why is the volcano hot?", "Because of magma.")
    trace = await ledger.reader.trace("session-1", "run-1")
    await ledger.erase(run=("session-1", "run-1"), digest=trace.answer.digest)
    assert (await found(ledger, "magma"), await found(ledger, "volcano")) == (set(), {"run-1"})
    await ledger.erase(run=("session-1", "run-1"))
    assert await found(ledger, "volcano") == set()


async def test_a_rebuild_mends_the_index(recorded, plain):
    outsider = plain()
    outsider.execute("DELETE FROM run_text WHERE run_id = 'question'")
    outsider.execute("UPDATE run_text SET words = 'nonsense' WHERE run_id = 'answer'")
    outsider.execute("INSERT INTO run_text (run_id, words) VALUES ('nobody', 'disk')")
    assert await found(recorded, "disk") != {"question", "answer"}
    report = await recorded.rebuild()
    assert (report.texts_changed, report.is_clean) == (3, False)
    assert await found(recorded, "disk") == {"question", "answer"}
    assert await found(recorded, "nonsense") == set()
    assert (await recorded.rebuild()).is_clean


async def test_more_matches_than_are_looked_at_are_said_to_be_cut(recorded, monkeypatch):
    monkeypatch.setattr("ledger.reading.run_list.MATCHES_MAX", 1)
    page = await recorded.reader.runs(RunFilter(text="now"))
    assert (len(page.rows), page.is_cut) == (1, True)


@pytest.mark.parametrize("text", ["", " ", '"', "*", "-!-", "x" * 501, "a " * 17])
def test_a_search_for_nothing_or_too_much_is_refused(text):
    with pytest.raises(InvalidInput, match="text must"):
        RunFilter(text=text)
