"""Random captures, erasures, rebuilds and reads against a simple model: nothing erased is readable again, and nothing
else is lost (SPEC E10, D19)."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from harness.content import SealedContent
from ledger import Ledger
from tests.contract.bytes_on_disk import found_in
from tests.contract.databases import Database
from tests.examples import examples
from tests.ledger.blank import blank_at
from tests.ledger.scripted import Attempt, ScriptedRun, seal

RUNS = 3

actions = st.one_of(
    st.tuples(st.just("capture"), st.integers(0, RUNS - 1), st.integers(0, 5), st.booleans()),
    st.tuples(st.just("erase run"), st.integers(0, RUNS - 1)),
    st.tuples(st.just("erase session"), st.integers(0, 1)),
    st.tuples(st.just("erase content"), st.integers(0, 30)),
    st.tuples(st.just("end"), st.integers(0, RUNS - 1)),
    st.tuples(st.just("rebuild")),
    st.tuples(st.just("reopen")),
)


class Model:
    """What each run captured, in order, and what is to be read of each content now."""

    def __init__(self) -> None:
        self.runs = [ScriptedRun(f"run-{number}", f"session-{number % 2}") for number in range(RUNS)]
        self.captured: list[list[str]] = [[] for _ in self.runs]
        self.ended: set[int] = set()
        self.contents: dict[tuple[int, str], bytes | str | None] = {}
        """By run and digest: the bytes, None where only the digest was kept, or `erased`."""
        self.words: dict[tuple[int, str], bytes] = {}

    def capture(self, number: int, sealed: SealedContent, words: str) -> None:
        key = (number, sealed.digest)
        self.captured[number].append(sealed.digest)
        self.words[key] = words.encode()
        if self.contents.get(key) is None:
            self.contents[key] = sealed.data

    def erase(self, number: int, digest: str | None = None) -> None:
        for key in self.contents:
            if key[0] == number and digest in (None, key[1]):
                self.contents[key] = "erased"


async def act(ledger: Ledger, model: Model, action: tuple) -> None:
    match action:
        case ("capture", number, pick, keep) if number not in model.ended:
            words = f"<<words {pick} of run {number}>>"
            sealed = seal(words, keep=keep)
            attempt: Attempt = model.runs[number].attempt()
            ledger.journal.submit(attempt.start(words, keep=keep)).result()
            model.capture(number, sealed, words)
        case ("erase run", number):
            await ledger.erase(run=(f"session-{number % 2}", f"run-{number}"))
            model.erase(number)
        case ("erase session", session):
            await ledger.erase(session=f"session-{session}")
            for number in range(RUNS):
                if number % 2 == session:
                    model.erase(number)
        case ("erase content", pick) if model.contents:
            number, digest = sorted(model.contents)[pick % len(model.contents)]
            await ledger.erase(run=(f"session-{number % 2}", f"run-{number}"), digest=digest)
            model.erase(number, digest)
        case ("end", number) if number not in model.ended and not model.captured[number]:
            ledger.journal.submit(model.runs[number].end()).result()
            model.ended.add(number)
        case ("rebuild",):
            assert (await ledger.rebuild()).is_clean


async def check(ledger: Ledger, model: Model, database: Database) -> None:
    for number, digests in enumerate(model.captured):
        trace = await ledger.reader.trace(f"session-{number % 2}", f"run-{number}")
        shown = [tool.input for tool in trace.tool_invocations if tool.input is not None]
        assert [view.digest for view in shown] == digests
        for view in shown:
            expected = model.contents[number, view.digest]
            assert (view.state == "erased") == (expected == "erased")
            assert view.data == (None if expected == "erased" else expected)
            assert (view.erasure is not None) == (expected == "erased")
    erased = {model.words[key] for key, now in model.contents.items() if now == "erased"}
    kept = {model.words[key] for key, now in model.contents.items() if isinstance(now, bytes)}
    assert found_in(database, *(erased - kept)) == set()


async def play(url: str, script: list[tuple]) -> None:
    model, database = Model(), Database(url)
    ledger = await database.open()
    for run in model.runs:
        ledger.journal.submit(run.start()).result()
    for action in script:
        if action == ("reopen",):
            await ledger.close()
            ledger = await database.open()
            # Its runs were left open, and recovery has ended them.
            model.ended |= set(range(RUNS))
        else:
            await act(ledger, model, action)
    await check(ledger, model, database)
    assert (await ledger.rebuild()).is_clean
    await check(ledger, model, database)
    await ledger.close()
    database.close()


@examples(25)
@given(st.lists(actions, min_size=1, max_size=40))
def test_nothing_erased_is_ever_readable_again_and_nothing_else_is_lost(script):  # CASES 45
    with tempfile.TemporaryDirectory() as folder:
        path = blank_at(Path(folder) / "runs.db")
        asyncio.run(play(f"sqlite:///{path}", script))
        connection = sqlite3.connect(path)
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()


@examples(4)
@given(st.lists(actions, min_size=5, max_size=20))
def test_nor_in_a_database(postgres_server, postgres_template, script):  # CASES 45
    name = postgres_server.create_database(template=postgres_template)
    asyncio.run(play(postgres_server.url(name), script))
    postgres_server.drop_database(name)
