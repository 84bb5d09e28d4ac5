"""Each way of forging a ledger in a database is found under a checkpoint that was kept outside (SPEC E9)."""

from __future__ import annotations

import asyncio
from functools import partial
from random import Random

import pytest

from ledger import Ledger, Signing
from ledger.audit.notes.notes import SigningKey
from ledger.verifying import verify
from tests.contract.databases import PostgresOutsider
from tests.contract.forgeries import WAYS, write_all_anew
from tests.contract.forging import Forger
from tests.contract.signed import ORIGIN, record_signed

SEED = 7


@pytest.fixture(scope="module")
def whole(postgres_server, postgres_template, tmp_path_factory):
    """A database with a ledger, to copy, and what was kept outside."""
    name = postgres_server.create_database(template=postgres_template)
    opened = partial(Ledger.open, postgres_server.url(name))
    kept = asyncio.run(record_signed(tmp_path_factory.mktemp("kept"), opened))
    # Copies of it are not restored dumps.
    postgres_server.execute("UPDATE ledger_meta SET value = '' WHERE key = 'home'", database=name)
    yield name, kept
    postgres_server.drop_database(name)


@pytest.fixture
def copy(whole, postgres_server):
    name = postgres_server.create_database(template=whole[0])
    yield postgres_server.url(name)
    postgres_server.drop_database(name)


@pytest.fixture
def forger(copy):
    outsider = PostgresOutsider(copy)
    yield Forger(outsider, Random(SEED))
    outsider.close()


@pytest.mark.parametrize("by", ["checkpoint", "anchor"])
def test_what_nobody_changed_is_right(whole, copy, by):
    assert whole[1].verify(copy, by=by) == (0, [])


@pytest.mark.parametrize("name", WAYS)
def test_what_was_forged_is_found_where_it_is(whole, copy, forger, name):
    forger.take_guards_away()
    expected = WAYS[name](forger)
    forger.put_guards_back()
    exit_code, findings = whole[1].verify(copy)
    assert exit_code == 1
    expected.check(findings)


def test_a_log_that_was_written_anew_and_signed_with_another_key_is_found_by_what_is_elsewhere(whole, copy, forger):
    key = SigningKey(ORIGIN, b"\x09" * 32)
    forger.take_guards_away()
    write_all_anew(forger, key.verifier)
    forger.put_guards_back()
    asyncio.run(sign(copy, key))
    assert asyncio.run(verify(copy)).is_right
    exit_code, findings = whole[1].verify(copy, by="anchor")
    assert (exit_code, {found["problem"] for found in findings}) == (1, {"checkpoint_differs"})


async def sign(url: str, key: SigningKey) -> None:
    async with await Ledger.open(url, signing=Signing(key=key)) as ledger:
        await ledger.checkpoint()
