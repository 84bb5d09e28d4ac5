"""Numbers, durations and instants."""

import pytest

from ledger.words import format as form


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0 s"),
        (999, "999 µs"),
        (1_000, "1 ms"),
        (999_499, "999 ms"),
        (999_600, "1.00 s"),
        (4_172_000, "4.17 s"),
        (9_999_999, "10.0 s"),
        (59_900_000, "59.9 s"),
        (60_000_000, "1 min"),
        (125_400_000, "2 min 05 s"),
        (3_599_700_000, "1 h"),
        (3_600_000_000 + 180_000_000, "1 h 03 min"),
        (1_234 * 3_600_000_000, "1,234 h"),
    ],
)
def test_a_duration_has_three_figures_and_a_unit(us, text):
    assert form.duration(us) == text


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (1, "a first"),
        (6, "a sixth"),
        (8, "an eighth"),
        (11, "an 11th"),
        (12, "a 12th"),
        (18, "an 18th"),
        (21, "a 21st"),
        (80, "an 80th"),
        (103, "a 103rd"),
        (112, "a 112th"),
        (180, "a 180th"),
        (11_000, "an 11,000th"),
    ],
)
def test_an_ordinal_has_the_article_that_it_is_spoken_with(number, words):
    assert form.nth(number) == words


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1_000, "1.0 kB"),
        (48_200, "48 kB"),
        (5_243_000, "5.2 MB"),
        (999_600, "1.0 MB"),
        (12_000_000_000, "12 GB"),
    ],
)
def test_a_size_is_in_decimal_units(size_bytes, text):
    assert form.size(size_bytes) == text


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "0"),
        (1, "0.000001"),
        (1_200, "0.0012"),
        (250_000, "0.25"),
        (1_500_000, "1.50"),
        (1_204_000_000, "1,204.00"),
        (9_007_199_254_740_991, "9,007,199,254.740991"),
    ],
)
def test_money_is_exact(micros, text):
    assert form.money(micros) == text


def test_an_instant_is_exact_to_the_microsecond_and_ends_in_z():
    assert form.instant(1_796_001_247_000_001) == "2026-11-30T01:14:07.000001Z"


def test_an_instant_before_the_epoch_and_one_at_the_edge_of_a_body_are_written_too():
    assert form.instant(-1) == "1969-12-31T23:59:59.999999Z"
    assert form.instant(2**53 - 1).startswith("2255-")


def test_every_time_for_people_names_its_zone():
    assert form.day_time(1_796_001_247_207_214) == "30 Nov 2026 01:14:07 UTC"
    assert form.clock(1_796_001_247_207_214) == "01:14:07.207214 UTC"


def test_what_the_run_itself_did_not_write_comes_after_it():
    assert form.elapsed(None) == "after"
    assert form.elapsed(4_171_400) == "+4.171"


def test_small_numbers_are_spelled_and_nouns_agree():
    assert form.some(1, "evidence repair") == "one evidence repair"
    assert form.some(12, "write") == "12 writes"
    assert form.plural(1_200, "tool call") == "1,200 tool calls"
