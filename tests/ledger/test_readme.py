"""What the README says is proven by a test is: the test is there, and says what it proves."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "ledger" / "README.md").read_text("utf-8")
NAMED = sorted(set(re.findall(r"`((?:bench|contract|faults|ledger|postgres|property)/test_\w+\.py)", README)))
CASES = re.findall(r"^\| (\d+) \|.*\| (`[^|]*`) \|$", README, re.M)


def test_the_table_of_rooms_has_every_room():
    table = README.partition("## The rooms")[2].partition("\n## ")[0]
    named = {name for cell in re.findall(r"^\| ([^|]+) \|", table, re.M) for name in re.findall(r"`(\w+)/?`", cell)}
    found = {path.stem for pattern in ("*.py", "*/") for path in (ROOT / "ledger").glob(pattern)}
    assert named == {name for name in found if not name.startswith("_")} - {"decisions"}


@pytest.mark.parametrize("name", NAMED)
def test_a_test_that_the_readme_names_is_there(name):
    assert (ROOT / "tests" / name).is_file()


def test_every_case_of_the_log_and_of_runs_has_a_test():
    assert [int(number) for number, _ in CASES] == list(range(25, 46))


@pytest.mark.parametrize(("number", "files"), CASES)
def test_a_case_is_cited_where_the_readme_says(number, files):
    for name in re.findall(r"`([^`]+)`", files):
        cited = re.findall(r"# .*CASES ([\d, ]+)", (ROOT / "tests" / name).read_text("utf-8"))
        cited += re.findall(r"\(CASES ([\d, ]+)\)", (ROOT / "tests" / name).read_text("utf-8"))
        assert number in {one for line in cited for one in re.findall(r"\d+", line)}, name
