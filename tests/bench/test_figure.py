"""A figure always stands beside its reference, and is kept in one form."""

import json

import pytest

from tests.bench.figure import figure, show, write

KEYS = {"name", "unit", "value", "reference", "reference_value", "ratio", "goal", "at_most", "met"}


@pytest.mark.parametrize(("goal", "met"), [(None, None), (2.0, True), (1.5, True), (1.4, False)])
def test_a_goal_is_met_by_a_ratio_up_to_it(goal, met):
    row = figure("boundary", "ms", 3.0, "plain", 2.0, goal)
    assert (row.ratio, row.met) == (1.5, met)


@pytest.mark.parametrize(("at_most", "goal", "met"), [(3.0, None, True), (2.9, None, False), (3.0, 1.4, False)])
def test_a_value_has_a_bound_of_its_own_beside_the_goal(at_most, goal, met):
    assert figure("boundary", "ms", 3.0, "plain", 2.0, goal, at_most).met is met


def test_figures_are_kept_as_a_list_of_objects(tmp_path):
    write([figure("boundary", "ms", 3.0, "plain", 2.0, None)], tmp_path / "build" / "bench.json")
    (kept,) = json.loads((tmp_path / "build" / "bench.json").read_text())
    assert set(kept) == KEYS
    assert (kept["ratio"], kept["goal"], kept["met"]) == (1.5, None, None)


def test_the_table_shows_a_figure_beside_its_reference(capsys):
    show([figure("boundary", "ms", 3.0, "plain", 2.0, 1.4)])
    line = next(line for line in capsys.readouterr().out.splitlines() if "boundary" in line)
    assert all(part in line for part in ("3.000 ms", "plain", "2.000 ms", "1.50", "1.4 MISSED"))


def test_the_table_shows_a_bound_with_its_unit(capsys):
    show([figure("import", "ms", 3.0, "plain", 2.0, at_most=4)])
    assert "4 ms met" in capsys.readouterr().out
