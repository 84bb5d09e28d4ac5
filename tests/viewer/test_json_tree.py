"""JSON is shown exactly as it was written."""

import json

from viewer.present import json_tree


def leaves(node):
    return [(node.key, node.text)] if not node.children else [leaf for child in node.children for leaf in leaves(child)]


def test_numbers_keep_their_digits():
    tree = json_tree.parse(b"[9223372036854775808, 1e-07, -0.0, 1.10, NaN, 12345678901234567890.5]")
    assert [text for _, text in leaves(tree)] == [
        "9223372036854775808",
        "1e-07",
        "-0.0",
        "1.10",
        "NaN",
        "12345678901234567890.5",
    ]


def test_duplicate_and_empty_keys_are_all_shown():
    assert leaves(json_tree.parse(b'{"a": 1, "a": 2, "": 3}')) == [("a", "1"), ("a", "2"), ("", "3")]


def test_a_number_in_a_string_is_a_string():
    tree = json_tree.parse(b'["1", 1, true, null]')
    assert [child.kind for child in tree.children] == ["string", "number", "word", "word"]
    assert [child.text for child in tree.children] == ["1", "1", "true", "null"]


def test_what_is_no_json_has_no_tree():
    assert [json_tree.parse(data) for data in (b"", b"{", b"\xff", b"{'a': 1}")] == [None] * 4


def test_nesting_beyond_the_depth_shown_is_cut_and_says_so():
    tree = json_tree.parse(b"[" * 130 + b"]" * 130)
    depth = 0
    while tree.children:
        tree, depth = tree.children[0], depth + 1
    assert (tree.kind, depth) == ("cut", json_tree.DEPTH_MAX)


def test_nesting_that_exhausts_the_parser_has_no_tree():
    assert json_tree.parse(b"[" * 60_000) is None


def test_a_tree_of_many_values_shows_some_and_says_of_how_many():
    tree = json_tree.parse(json.dumps(list(range(5_000))).encode())
    assert len(tree.children) == json_tree.NODES_MAX + 1
    assert tree.children[-1].text == "showing 400 of 5,000 items"


def test_upper_levels_start_open():
    tree = json_tree.parse(b'{"a": {"b": {"c": {}}}}')
    assert (tree.open, tree.children[0].open, tree.children[0].children[0].open) == (True, True, False)
