"""Search in the runbooks: Markdown files, cut at their headings and ranked by BM25 (SQLite FTS5, in memory)."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from demo.bounds import RUNBOOK_FILE_BYTES_MAX, RUNBOOK_FILES_MAX, RUNBOOK_HITS_MAX, RUNBOOK_TEXT_CHARS_MAX
from demo.text import beginning
from demo.tools.errors import FolderUnreadable
from harness import RunContext

CREATE_INDEX = "CREATE VIRTUAL TABLE section USING fts5(title, heading, body, tokenize = 'porter unicode61')"
INSERT_SECTION = "INSERT INTO section (rowid, title, heading, body) VALUES (?, ?, ?, ?)"
# A word in a title or heading counts more than one in the text; BM25 is smaller where it fits better.
BEST_SECTIONS = """
    SELECT rowid, bm25(section, 6.0, 2.0, 1.0) AS rank FROM section WHERE section MATCH ? ORDER BY rank, rowid
"""
STEPS_HEADING = "What to do"
STEPS_MAX = 6
NUMBERED = re.compile(r"\n\d+\. ")
WORD = re.compile(r"\w+")
QUERY_WORDS_MAX = 32


class RunbookHit(TypedDict):
    """A runbook by its best section; a higher score is a better match."""

    runbook: str
    title: str
    section: str
    score: float
    text: str
    steps: list[str]
    """What it says to do, in order."""


class RunbookHits(TypedDict):
    """The best runbooks, best first."""

    query: str
    runbooks_searched: int
    limits_reached: list[str]
    """`files` if the folder holds more of them, `file bytes` if the end of one was not read."""
    hits: list[RunbookHit]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it."""

    runbook: str
    title: str
    heading: str
    body: str


def search_runbooks(run: RunContext, query: str, limit: int = 2, *, folder: Path) -> RunbookHits:
    """The runbooks that fit a query in plain words, each with the section that fits best."""
    if not folder.is_dir():
        raise FolderUnreadable(f"there is no runbook folder {str(folder)!r}")
    all_paths = sorted(folder.glob("*.md"))
    paths = all_paths[:RUNBOOK_FILES_MAX]
    limits_reached = ["files"] if len(all_paths) > len(paths) else []
    if any(path.stat().st_size > RUNBOOK_FILE_BYTES_MAX for path in paths):
        limits_reached.append("file bytes")
    sections = [section for path in paths for section in _sections(path)]
    words = list(dict.fromkeys(word.lower() for word in WORD.findall(query)))[:QUERY_WORDS_MAX]
    best: dict[str, tuple[Section, float]] = {}
    for section, score in _ranked(sections, words):
        best.setdefault(section.runbook, (section, score))
    hits = [
        RunbookHit(
            runbook=section.runbook,
            title=section.title,
            section=section.heading,
            score=round(score, 2),
            text=_shown(section.body),
            steps=_steps(sections, section.runbook),
        )
        for section, score in list(best.values())[: max(1, min(limit, RUNBOOK_HITS_MAX))]
    ]
    return RunbookHits(query=query, runbooks_searched=len(paths), limits_reached=limits_reached, hits=hits)


def _ranked(sections: list[Section], words: list[str]) -> Iterator[tuple[Section, float]]:
    """Sections that hold any of the words, best first."""
    if not words:
        return
    match = " OR ".join(f'"{word}"' for word in words)
    with closing(sqlite3.connect(":memory:")) as index:
        index.execute(CREATE_INDEX)
        rows = ((number, part.title, part.heading, part.body) for number, part in enumerate(sections))
        index.executemany(INSERT_SECTION, rows)
        for number, rank in index.execute(BEST_SECTIONS, (match,)):
            yield sections[number], -rank


def _steps(sections: list[Section], runbook: str) -> list[str]:
    """The numbered list of a runbook's section on what to do."""
    bodies = (part.body for part in sections if part.runbook == runbook and part.heading == STEPS_HEADING)
    return [_shown(step.strip()) for body in bodies for step in NUMBERED.split(f"\n{body}")[1:]][:STEPS_MAX]


def _sections(path: Path) -> Iterator[Section]:
    """Each `##` section with something in it; what stands before the first is called Summary."""
    with path.open("rb") as stream:
        text = stream.read(RUNBOOK_FILE_BYTES_MAX).decode("utf-8", "replace")
    title, heading = path.stem, "Summary"
    lines: list[str] = []
    for line in [*text.splitlines(), "## "]:
        if line.startswith("# "):
            title = line[2:].strip()
        elif line.startswith("## "):
            if body := "\n".join(lines).strip():
                yield Section(path.stem, title, heading, body)
            heading, lines = line[3:].strip(), []
        else:
            lines.append(line)


def _shown(body: str) -> str:
    return beginning(body, RUNBOOK_TEXT_CHARS_MAX)
