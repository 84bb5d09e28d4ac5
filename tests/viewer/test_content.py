"""Blocks of content, and one-line views of it."""

from dataclasses import replace

from ledger.records import Erasure
from tests.viewer.fake_run import content
from viewer.api.bodies import content_body
from viewer.present.content import block, peek, reply
from viewer.present.sentence import words
from viewer.present.trace.judgements import judgements


def test_json_is_shown_as_a_tree_and_text_by_window():
    assert block("k", content({"a": 1})).tree.children[0].text == "1"
    assert block("k", content("plain")).window.text == "plain"
    assert block("k", content([])).tree.text == "0 items"


def test_json_that_is_too_big_for_a_peek_is_a_tree_once_it_is_asked_for():
    big = content({"text": "x" * 20_000})
    assert block("k", big).window.whole is False
    assert block("k", big, asked_for=True).tree is not None
    assert block("k", big, asked_for=True, start=10).tree is None


def test_what_only_claims_to_be_json_is_shown_as_text():
    broken = content("{broken")
    assert block("k", type(broken)("d", 7, "application/json", "stored", b"{broken")).window.text == "{broken"


def test_content_without_bytes_says_why():
    assert words(block("k", content("gone", state="erased")).missing) == "Erased: 4 bytes."
    assert words(block("k", content("gone", state="damaged")).missing) == "Damaged: 4 bytes."
    assert words(block("k", content("kept", state="digest_only")).missing) == "Only its digest was kept: 4 bytes."
    assert words(block("k", content("")).missing) == "Empty."
    assert block("k", None) is None


def test_a_reply_is_what_the_model_said_or_the_tools_it_calls():
    calls = [{"call_id": "c0", "name": "query_logs", "arguments": "{}"}, {"name": "query_metrics"}]
    assert reply(content({"model": "m", "content": "The disk\nis full.", "tool_calls": []})) == "The disk is full."
    assert reply(content({"content": None, "tool_calls": calls})) == "calls query_logs, query_metrics"
    assert reply(content({"intent": "COMPLEX"})) == '{"intent":"COMPLEX"}'
    assert reply(content("CHAT_GRAPH")) == "CHAT_GRAPH"
    assert reply(None) == ""


def test_a_peek_is_one_short_line():
    assert len(peek(content("x\n" * 5_000_000))) <= 96
    assert peek(content("", state="erased")) == "erased"


def test_judgements_are_told_in_words():
    feedback = {"useful": False, "actor": "on-call", "comment": "No.", "recorded_us": 5}
    evaluation = {"rules": {"verdict": "NEEDS_WORK", "usage": {"cited_results": 2}}}
    found = judgements(feedback, evaluation)
    assert [(each.by, each.verdict, each.words, each.figures, each.at_us) for each in found] == [
        ("Feedback by on-call", "Not useful", "No.", "", 5),
        ("rules", "Needs work", "", "cited results 2", None),
    ]
    assert judgements(None, None) == []


def test_an_evaluators_reasons_in_json_are_shown_as_a_tree():
    (found,) = judgements(
        None, {"rules": {"verdict": "PASS", "rationale": '{"rules": [{"rule": "a", "passed": true}]}'}}
    )
    assert (found.words, found.tree.children[0].key, found.tree.children[0].open) == ("", "rules", False)


def test_what_was_erased_says_by_whom_when_and_why():  # E10
    erased = replace(content("gone", state="erased"), erasure=Erasure(0, "USER_REQUEST", "dpo-1", "erasure-1"))
    told = "Erased by dpo-1 on 1 Jan 1970 00:00:00 UTC (user request): 4 bytes."
    assert words(block("k", erased).missing) == told
    unknown = replace(erased, erasure=Erasure(0, "RETENTION", None, "erasure-1"))
    assert words(block("k", unknown).missing).startswith("Erased on 1 Jan 1970 00:00:00 UTC (retention)")
    assert content_body(erased)["erasure"] == {
        "at": "1970-01-01T00:00:00.000000Z",
        "actor": "dpo-1",
        "reason": "USER_REQUEST",
    }
