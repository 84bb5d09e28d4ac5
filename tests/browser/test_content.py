"""Content in a real browser: a JSON tree whose paths and values can be copied, tables and diffs that fit any width."""

import json

import pytest
from playwright.sync_api import expect

from tests.browser.anybody import require_no_sideways_scrolling, require_usable
from tests.viewer.example_runs import HOSTILE, LIMITS
from tests.viewer.fake_reader import FakeReader
from tests.viewer.fake_run import FakeRun
from tests.viewer.served import served

PATH = "/trace?sessionId=s&runId=r"
HIDDEN = "x\u202ey\x1b"
DIFF = "--- a/app.py\n+++ b/app.py\n@@ -1,2 +1,2 @@\n-x = 1\n+x = 2\n"


@pytest.fixture(scope="module")
def shapes():
    run = FakeRun("s", "r", "q", dict(LIMITS)).start()
    run.tool(1, 2, "tree", {"deep": {"list": [{"a b": 1.50}, {"c": HIDDEN}]}}, output={"n": None})
    run.tool(3, 4, "rows", {}, output=[{"host": "db-3", "text": text, "n": n} for n, text in enumerate(HOSTILE)])
    run.tool(5, 6, "patch", {}, output=DIFF)
    with served(FakeReader([run])) as origin:
        yield origin


def test_a_path_and_a_value_of_a_tree_are_copied_exactly(watch, shapes):
    page = watch(at=shapes, permissions=["clipboard-read", "clipboard-write"]).open(PATH)
    page.locator("#tool-1 > details > summary").click()
    tree = page.locator("#tool-1-input json-tree")
    tree.get_by_role("button", name="open all").click()

    def copied(what):
        tree.get_by_role("button", name=what).click()
        expect(tree.locator("output")).to_have_text("copied")
        return page.evaluate("navigator.clipboard.readText()")

    tree.get_by_text("a b").click()
    assert (copied("copy path"), copied("copy value")) == ('$.deep.list[0]["a b"]', "1.5")
    tree.get_by_text("x‹U+202E›y‹ESC›").click()
    assert (copied("copy path"), copied("copy value")) == ("$.deep.list[1].c", HIDDEN)
    tree.get_by_text("list", exact=True).click()
    assert json.loads(copied("copy value")) == [{"a b": 1.5}, {"c": HIDDEN}]


def test_a_tree_is_walked_with_the_keys(watch, shapes):
    page = watch(at=shapes).open(PATH)
    page.locator("#tool-1 > details > summary").click()
    tree = page.locator("#tool-1-input json-tree")
    tree.get_by_role("button", name="open all").click()
    tree.locator("summary").first.focus()
    for path in ("$.deep", "$.deep.list", "$.deep.list[0]", '$.deep.list[0]["a b"]', "$.deep.list[1]"):
        page.keyboard.press("ArrowDown")
        expect(tree.locator("output")).to_have_text(path)


def test_whoever_comes_can_use_every_shape(watch, shapes):
    page = watch(at=shapes, viewport={"width": 1280, "height": 800}).open(PATH)
    require_usable(page)
    require_no_sideways_scrolling(page)
    assert page.evaluate("window.pwned") is None


def test_every_shape_is_there_without_javascript(watch, shapes):
    page = watch(at=shapes, java_script_enabled=False).open(PATH)
    page.locator("#tool-2 > details > summary").click()
    expect(page.locator("#tool-2-output table tbody tr")).to_have_count(len(HOSTILE))
    page.locator("#tool-3 > details > summary").click()
    expect(page.locator("#tool-3-output .added")).to_contain_text("+x = 2")
