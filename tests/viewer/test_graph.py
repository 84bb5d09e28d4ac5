"""The layout of the walked graph."""

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from viewer.present.trace.graph import NODE_HEIGHT, TRANSITIONS_MAX, Transition, graph


def walk(*names, causes=()):
    pairs = zip((None, *names), names, strict=False)
    return [
        Transition(number, source, target, dict(causes).get(number, "NEXT"))
        for number, (source, target) in enumerate(pairs, 1)
    ]


def test_there_is_no_graph_without_a_transition():
    assert graph([]) is None


def test_only_nodes_that_were_entered_are_drawn_and_each_once():
    drawn = graph(walk("planner", "executor", "guard", "executor", "guard", "composer"))
    assert [node.name for node in drawn.nodes] == ["planner", "executor", "guard", "composer"]
    assert [node.name for node in drawn.nodes if node.last] == ["composer"]


def test_edges_carry_the_numbers_of_all_transitions_along_them():
    drawn = graph(walk("planner", "executor", "guard", "executor", "guard", "composer"))
    assert [edge.numbers for edge in drawn.edges] == ["1", "2", "3, 5", "4", "6"]


def test_an_edge_walked_often_shows_the_first_numbers_and_says_that_there_are_more():
    drawn = graph(walk(*["a", "b"] * 8))
    assert drawn.edges[1].numbers == "2, 4, 6, 8 …"


def test_a_node_lies_one_row_below_the_one_it_was_first_entered_from():
    y = {node.name: node.y for node in graph(walk("a", "b", "c", "b", "d")).nodes}
    assert y["a"] < y["b"] < y["c"]
    assert y["c"] == y["d"]


def test_the_way_back_runs_along_the_side():
    drawn = graph(walk("a", "b", "c", "a"))
    assert drawn.edges[-1].badge_x > max(node.x + node.width / 2 for node in drawn.nodes)


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=80))
def test_whatever_the_walk_everything_lies_inside_the_drawing_and_no_boxes_overlap(names):
    drawn = graph(walk(*names))
    for node in drawn.nodes:
        assert node.x - node.width / 2 >= 0
        assert node.x + node.width / 2 <= drawn.width
        assert NODE_HEIGHT / 2 <= node.y <= drawn.height - NODE_HEIGHT / 2
    rows = {}
    for node in sorted(drawn.nodes, key=lambda node: node.x):
        rows.setdefault(node.y, []).append(node)
    for row in rows.values():
        for left, right in itertools.pairwise(row):
            assert left.x + left.width / 2 <= right.x - right.width / 2
    for edge in drawn.edges:
        assert edge.badge_x - edge.badge_width / 2 >= 0
        assert edge.badge_x + edge.badge_width / 2 <= drawn.width
        assert re.fullmatch(r"[MCVHQ0-9. -]+", edge.path)
    assert drawn.drawn_count == min(len(names), TRANSITIONS_MAX)
    assert drawn.total_count == len(names)
