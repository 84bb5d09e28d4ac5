"""The layout of the walked graph."""

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from viewer.present.trace.graph import NODE_HEIGHT, NODES_MAX, TRANSITIONS_MAX, Transition, graph, middle_cut


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


def test_an_edge_walked_more_than_once_says_how_often_and_one_aside_says_why():
    drawn = graph(walk("a", "b", "a", "b", "c", causes={3: "REPAIR", 5: "FALLBACK"}.items()))
    told = [(edge.numbers, edge.times, edge.words) for edge in drawn.edges]
    assert told == [("1", 1, ""), ("2, 4", 2, ""), ("3", 1, "repair"), ("5", 1, "fallback")]


def test_an_edge_walked_often_shows_the_first_numbers_and_says_that_there_are_more():
    drawn = graph(walk(*["a", "b"] * 8))
    assert drawn.edges[1].numbers == "2, 4, 6, 8 …"


def test_nodes_stand_below_each_other_in_the_order_in_which_they_were_first_entered():
    nodes = graph(walk("a", "b", "c", "b", "d")).nodes
    assert [node.name for node in sorted(nodes, key=lambda node: node.y)] == ["a", "b", "c", "d"]
    assert len({node.x for node in nodes}) == 1


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
    for above, below in itertools.pairwise(drawn.nodes):
        assert above.y + NODE_HEIGHT / 2 < below.y - NODE_HEIGHT / 2
    for edge in drawn.edges:
        assert edge.badge_x - edge.badge_width / 2 >= 0
        assert edge.badge_x + edge.badge_width / 2 <= drawn.width
        assert re.fullmatch(r"[MCVHQ0-9. -]+", edge.path)
    assert drawn.drawn_count == min(len(names), TRANSITIONS_MAX)
    assert drawn.total_count == len(names)


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=40))
def test_no_line_runs_behind_a_node_and_no_two_badges_lie_on_each_other(names):
    drawn = graph(walk(*names))
    right = max(node.x + node.width / 2 for node in drawn.nodes)
    for edge in drawn.edges:
        if "Q" in edge.path:
            xs = [float(x) for x in re.findall(r"[MH](-?[\d.]+)", edge.path)]
            assert all(x >= right - 0.1 for x in xs)
    badges = [
        (edge.badge_x - edge.badge_width / 2, edge.badge_x + edge.badge_width / 2, edge.badge_y) for edge in drawn.edges
    ]
    for one, other in itertools.combinations(badges, 2):
        assert one[1] <= other[0] + 0.2 or other[1] <= one[0] + 0.2 or abs(one[2] - other[2]) >= 16


def test_forty_workers_of_one_supervisor_stay_narrow_enough_to_be_read():
    names = itertools.chain.from_iterable(("supervisor", f"worker_with_a_long_name_{number}") for number in range(40))
    drawn = graph(walk(*names))
    assert len(drawn.nodes) == 41
    assert drawn.width < 420
    assert len({node.label for node in drawn.nodes}) == 41


def test_a_long_name_loses_its_middle_and_keeps_both_ends():
    assert middle_cut("investigate_the_connection_pool") == "investigate…ction_pool"
    assert middle_cut("planner") == "planner"


def test_what_came_after_the_event_that_is_looked_at_is_later_and_the_walk_stands_where_it_was():
    steps = [
        Transition(no, source, target, "NEXT", seq)
        for no, source, target, seq in [
            (1, None, "a", 5),
            (2, "a", "b", 9),
            (3, "b", "a", 12),
            (4, "a", "b", 15),
            (5, "b", "c", 20),
        ]
    ]
    then = graph(steps, at_seq=12)
    assert [(node.name, node.current, node.last, node.is_later) for node in then.nodes] == [
        ("a", True, False, False),
        ("b", False, False, False),
        ("c", False, False, True),
    ]
    assert [(edge.numbers, edge.is_later) for edge in then.edges] == [
        ("1", False),
        ("2", False),
        ("3", False),
        ("5", True),
    ]
    assert graph(steps, at_seq=20) == graph(steps)


def test_a_graph_of_more_nodes_than_can_be_drawn_is_drawn_as_far_as_it_goes_and_says_so():
    drawn = graph(walk(*(f"n{number}" for number in range(NODES_MAX + 20))))
    assert len(drawn.nodes) == NODES_MAX
    assert (drawn.drawn_count, drawn.total_count) == (NODES_MAX, NODES_MAX + 20)
