"""Whatever the owner of a file does to a ledger: under a checkpoint that was kept outside, it is found (SPEC E9)."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import Ledger, Signing
from ledger.audit.notes.notes import SigningKey
from ledger.copies.backup import back_up, restore
from ledger.verifying import verify
from tests.contract.databases import SqliteOutsider
from tests.contract.forgeries import WAYS, write_all_anew
from tests.contract.forging import Forger
from tests.contract.signed import ORIGIN, Kept, record_signed
from tests.examples import examples


class Whole:
    """A ledger's file as it was, and what was kept outside."""

    def __init__(self, data: bytes, kept: Kept) -> None:
        self.data = data
        self.kept = kept


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Whole:
    folder = tmp_path_factory.mktemp("whole")
    kept = asyncio.run(record_signed(folder, partial(Ledger.open, folder / "runs.db")))
    assert kept.verify(folder / "runs.db") == (0, [])
    return Whole((folder / "runs.db").read_bytes(), kept)


@pytest.fixture
def copy(whole, tmp_path) -> Path:
    (tmp_path / "runs.db").write_bytes(whole.data)
    return tmp_path / "runs.db"


@examples(60)
@given(name=st.sampled_from(sorted(WAYS)), seed=st.integers(0, 2**32))
def test_whatever_was_forged_is_found_where_it_is(whole, tmp_path_factory, name, seed):
    path: Path = tmp_path_factory.mktemp("forged") / "runs.db"
    path.write_bytes(whole.data)
    with forging(path, seed) as forger:
        expected = WAYS[name](forger)
    exit_code, findings = whole.kept.verify(path)
    assert exit_code == 1
    expected.check(findings)


@contextlib.contextmanager
def forging(path: Path, seed: int = 0) -> Iterator[Forger]:
    """Somebody at work, who leaves all triggers as they were."""
    outsider = SqliteOutsider(path)
    forger = Forger(outsider, Random(seed))
    forger.take_guards_away()
    yield forger
    forger.put_guards_back()
    outsider.close()


@pytest.mark.parametrize("by", ["checkpoint", "anchor"])
def test_a_log_that_was_written_anew_and_signed_with_another_key_is_found_by_what_is_elsewhere(whole, copy, by):
    key = SigningKey(ORIGIN, b"\x09" * 32)
    with forging(copy) as forger:
        write_all_anew(forger, key.verifier)
    asyncio.run(sign(copy, key))
    report = asyncio.run(verify(copy))
    assert report.is_right
    exit_code, findings = whole.kept.verify(copy, by=by)
    assert (exit_code, {found["problem"] for found in findings}) == (1, {"checkpoint_differs"})


async def sign(path: Path, key: SigningKey) -> None:
    async with await Ledger.open(path, signing=Signing(key=key)) as ledger:
        await ledger.checkpoint()


def vacuum(path: Path) -> Path:
    connection = sqlite3.connect(path)
    connection.execute("VACUUM")
    connection.close()
    return path


def make_backup(path: Path) -> Path:
    asyncio.run(back_up(path, path.with_name("backup.db")))
    return path.with_name("backup.db")


def make_restored(path: Path) -> Path:
    asyncio.run(restore(make_backup(path), path.with_name("restored.db")))
    return path.with_name("restored.db")


@pytest.mark.parametrize("by", ["checkpoint", "anchor"])
@pytest.mark.parametrize("kind", [Path, vacuum, make_backup, make_restored])
def test_what_nobody_changed_is_right(whole, copy, kind, by):
    assert whole.kept.verify(kind(copy), by=by) == (0, [])
