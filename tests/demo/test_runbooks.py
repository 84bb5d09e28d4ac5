"""The bundled runbooks, and the search in them."""

import json

import pytest

from demo.tools.errors import FolderUnreadable
from demo.tools.runbooks import search_runbooks
from demo.tools.sources import BUNDLED_RUNBOOKS


@pytest.mark.parametrize(
    ("query", "runbook"),
    [
        ("the disk is nearly full, no space left on device", "disk-full"),
        ("processes are killed because memory runs out", "memory-pressure"),
        ("load average is high and the CPU is busy", "high-cpu-load"),
        ("nginx fails to start", "service-fails-to-start"),
        ("many errors in the logs", "log-errors"),
        ("an alert is firing in Prometheus", "alert-firing"),
        ("connection refused, name resolution fails", "network-trouble"),
    ],
)
def test_a_trouble_leads_to_its_runbook(run, query, runbook):
    assert search_runbooks(run, query, folder=BUNDLED_RUNBOOKS)["hits"][0]["runbook"] == runbook


@pytest.mark.parametrize("path", sorted(BUNDLED_RUNBOOKS.glob("*.md")), ids=lambda path: path.stem)
def test_every_runbook_says_what_to_look_for_and_what_to_do(path):
    headings = [line for line in path.read_text().splitlines() if line.startswith("## ")]
    assert headings == ["## Signs", "## Check", "## What to do", "## Prevent"]


def test_a_hit_brings_the_steps_of_its_runbook(run):
    hit = search_runbooks(run, "disk full", limit=1, folder=BUNDLED_RUNBOOKS)["hits"][0]
    assert len(hit["steps"]) == 4
    assert hit["steps"][0].startswith("Free space that is safe to free")


def test_each_runbook_is_listed_once_and_the_best_first(run):
    hits = search_runbooks(run, "disk memory cpu service network errors", limit=5, folder=BUNDLED_RUNBOOKS)["hits"]
    assert len({hit["runbook"] for hit in hits}) == len(hits) == 5
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)


def test_a_rare_word_counts_more_than_a_common_one_and_a_short_text_more_than_a_long_one(run, tmp_path):
    def written(name, body):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n\n## Check\n\n{body}\n")

    for number in range(8):
        written(f"common{number}", "the disk the disk the disk")
    written("long", "quorum " + "filler " * 200)
    written("short", "quorum")
    hits = search_runbooks(run, "disk quorum", limit=3, folder=tmp_path)["hits"]
    assert [hit["runbook"] for hit in hits][:2] == ["short", "long"]


def test_more_than_is_read_is_said(run, tmp_path, monkeypatch):
    monkeypatch.setattr("demo.tools.runbooks.RUNBOOK_FILES_MAX", 1)
    monkeypatch.setattr("demo.tools.runbooks.RUNBOOK_FILE_BYTES_MAX", 10)
    for name in ("a", "b"):
        (tmp_path / f"{name}.md").write_text("# disk\n\ndisk disk disk\n")
    found = search_runbooks(run, "disk", folder=tmp_path)
    assert (found["runbooks_searched"], found["limits_reached"]) == (1, ["files", "file bytes"])


@pytest.mark.parametrize("query", ["", "!!!", '" OR *', "NEAR(disk, 3)", "title:disk", "zzzz qqqq"])
def test_no_query_can_break_the_search(run, query):
    json.dumps(search_runbooks(run, query, folder=BUNDLED_RUNBOOKS))


def test_words_that_no_runbook_holds_find_nothing(run):
    assert search_runbooks(run, "zebra unicorn", folder=BUNDLED_RUNBOOKS)["hits"] == []


def test_a_missing_folder_is_a_typed_error(run, tmp_path):
    with pytest.raises(FolderUnreadable):
        search_runbooks(run, "disk", folder=tmp_path / "none")
