"""Hostile text is made visible, and long text is shown by window."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.words.text import shorten, visible
from viewer.present.text import visible_markup, window


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "‹ESC›[31mred"),
        ("a\x00b\x7f", "a‹NUL›b‹DEL›"),
        ("\r\b\x9b", "‹CR›‹BS›‹U+009B›"),
        ("invoice\u202efdp.exe", "invoice‹U+202E›fdp.exe"),
        ("\u2066x\u2069\u200b\ufeff", "‹U+2066›x‹U+2069›‹U+200B›‹U+FEFF›"),
        ("hidden\U000e0041", "hidden‹U+E0041›"),
        ("\ud800", "‹U+D800›"),
        ("tab\tand\nline stay", "tab\tand\nline stay"),
        ("naïve 👩‍👩‍👧 עברית", "naïve 👩‍👩‍👧 עברית"),
    ],
)
def test_a_character_that_hides_or_turns_text_is_named(text, shown):
    assert visible(text) == shown


def test_marks_in_html_are_told_apart_from_text_that_looks_like_them():
    assert visible_markup("‹ESC›\x1b<b>") == ('‹ESC›<span class="mark" title="U+001B">‹ESC›</span>&lt;b&gt;')


@given(st.text(st.characters(codec=None)))
def test_whatever_the_text_what_is_shown_can_be_encoded_and_holds_no_control_character(text):
    shown = visible(text)
    shown.encode("utf-8")
    assert not [character for character in shown if ord(character) < 32 and character not in "\t\n"]
    assert "<" not in visible_markup(text).replace('<span class="mark" title=', "").replace("</span>", "")


@given(st.binary(max_size=80), st.integers(-5, 90), st.integers(4, 20))
def test_windows_follow_each_other_without_gap_or_overlap(data, start, length):
    at, seen = 0, b""
    while True:
        shown = window(data, at, length)
        assert shown.start == at
        assert 0 <= shown.end - shown.start <= length
        seen += data[shown.start : shown.end]
        if shown.next_start is None:
            break
        assert shown.next_start > at
        at = shown.next_start
    assert seen == data
    assert 0 <= window(data, start, length).start <= len(data)


@given(st.text(max_size=40), st.integers(4, 9))
def test_a_window_cuts_no_character_in_two(text, length):
    data, at, seen = text.encode(), 0, ""
    while at is not None:
        shown = window(data, at, length)
        seen += shown.text
        at = shown.next_start
    assert seen == text


def test_a_line_of_five_megabytes_is_shown_a_window_at_a_time():
    shown = window(b"x" * 5_000_000, 8_192)
    assert (shown.start, shown.end, len(shown.text)) == (8_192, 16_384, 8_192)
    assert (shown.previous_start, shown.next_start, shown.whole) == (0, 16_384, False)


def test_a_shortened_text_is_one_line_and_says_that_it_was_cut():
    assert shorten("one\ntwo  three", 40) == "one two three"
    assert shorten("x" * 1_000, 10) == "xxxxxxxxx…"
    assert shorten("exactly", 7) == "exactly"
