"""A list of flat objects is a table and a diff its lines; whatever fits no shape exactly stays what it is."""

import json

import pytest

from tests.viewer.example_runs import HOSTILE, LIMITS
from tests.viewer.fake_reader import FakeReader
from tests.viewer.fake_run import FakeRun
from tests.viewer.served import client_of
from viewer.present import json_tree
from viewer.present.shapes import diff, table

DIFF = "--- a/app.py\n+++ b/app.py\n@@ -1,3 +1,3 @@\n import os\n-x = 1\n+x = 2\n"


def table_of(value, text=None):
    tree = json_tree.parse((text or json.dumps(value)).encode())
    assert tree is not None
    return table(tree)


def test_a_list_of_flat_objects_is_a_table_with_every_member_in_its_column():
    found = table_of([{"a": 1, "b": "x"}, {"b": None, "c": 2.50}])
    assert found is not None
    assert found.columns == ("a", "b", "c")
    assert [[cell and cell.text for cell in row] for row in found.rows] == [["1", "x", None], [None, "null", "2.5"]]


@pytest.mark.parametrize(
    "value",
    [
        [{"a": 1}],
        [{"a": 1}, 2],
        [{"a": 1}, {"a": [1]}],
        [{"a": 1}, {"a": {}}],
        [[1], [2]],
        [{}, {}],
        {"a": 1},
        [{f"c{number}": 1 for number in range(20)}] * 2,
        [{"a": number} for number in range(1_000)],
    ],
)
def test_what_is_no_list_of_few_flat_objects_stays_a_tree(value):
    assert table_of(value) is None


def test_a_name_that_stands_twice_is_not_tidied_away():
    assert table_of(None, '[{"a": 1, "a": 2}, {"a": 3}]') is None


def test_a_diff_is_told_by_its_media_type_or_by_how_it_begins():
    kinds = ["place", "place", "place", "same", "removed", "added", "same"]
    for media_type in ("text/x-diff", "text/plain; charset=utf-8"):
        assert [line.kind for line in diff(DIFF, media_type) or ()] == kinds
    assert "\n".join(line.text for line in diff(DIFF, "text/plain") or ()) == DIFF


@pytest.mark.parametrize(
    ("text", "media_type"),
    [("- one\n- two\n+ three", "text/plain"), (DIFF, "application/json"), ("--- a\n+++ b\n", "text/plain")],
)
def test_what_only_looks_a_little_like_a_diff_is_text(text, media_type):
    assert diff(text, media_type) is None


def test_hostile_words_in_tables_trees_and_diffs_are_text():  # CASES 46
    run = FakeRun("s", "r", "q", dict(LIMITS)).start()
    run.tool(1, 2, "rows", {}, output=[{text: text, "n": 1} for text in HOSTILE[:6]])
    run.tool(3, 4, "patch", {}, output=DIFF + "\n".join(f"+{text}" for text in HOSTILE))
    run.tool(5, 6, "tree", {}, output={"all": [{text: [text]} for text in HOSTILE]})
    with client_of(FakeReader([run])) as client:
        answer = client.get("/trace?sessionId=s&runId=r").text
    assert '<div class="cells"' in answer
    assert '<div class="text diff"' in answer
    assert "<json-tree" in answer
    assert "<img" not in answer
    assert "<script>window" not in answer
    assert not set("\x00\x07\x1b\u202e\u2066\u200b\U000e0041") & set(answer)


def test_what_cannot_be_shown_as_it_is_can_be_copied_so():
    tree = json_tree.parse(json.dumps({"a\u202eb": "x\x1by", "plain": "z"}).encode())
    assert tree is not None
    hidden, plain = tree.children
    assert (hidden.exact_key, hidden.exact_text) == ('"a\\u202eb"', '"x\\u001by"')
    assert (plain.exact_key, plain.exact_text) == (None, None)
