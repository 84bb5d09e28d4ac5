"""Where two persons may erase, one asks and the other confirms, on every engine (SPEC E10, D2)."""

import asyncio
import re

import pytest
from click.testing import CliRunner

from ledger import Ledger
from ledger.erasing.errors import (
    ErasureAlreadyConfirmed,
    ErasureRequestExpired,
    ErasureRequestNotFound,
    SecondPersonNeeded,
)
from ledger.erasing.two_persons import REQUEST_TTL_S
from ledger.verifying.verify import verify
from tests.contract.test_erasing import talk
from viewer.cli import main

RUN = ("session-1", "run-1")


@pytest.fixture
async def two(ledger):
    """A ledger with something to erase, and two who may."""
    await talk(ledger)
    for owner in ("dpo-1", "dpo-2"):
        await ledger.tokens.make(owner, ["erase"])
    await ledger.tokens.make("reader-1", ["read"])
    return ledger


@pytest.fixture
def two_on_disk(database):
    """The same, closed again; its address."""

    async def prepare():
        async with await Ledger.open(database.url) as ledger:
            await talk(ledger)
            for owner in ("dpo-1", "dpo-2"):
                await ledger.tokens.make(owner, ["erase"])

    asyncio.run(prepare())
    return str(database.url)


async def decided(ledger):
    return [event.fields for event in await ledger.reader.system_events() if event.type == "erasure.decided"]


async def question(ledger):
    return (await ledger.reader.trace(*RUN)).run.summary.query


async def test_one_person_alone_erases_nothing_where_two_could(two):
    with pytest.raises(SecondPersonNeeded) as refused:
        await two.erase(run=RUN, actor="dpo-1")
    assert (refused.value.code, refused.value.asked_by) == ("second_person_needed", "dpo-1")
    assert refused.value.persons == ("dpo-1", "dpo-2")
    with pytest.raises(SecondPersonNeeded):
        await two.erase_older_than(0, actor="dpo-1")
    assert await decided(two) == []
    assert await question(two) is not None


async def test_one_name_written_in_another_way_is_no_second_person(ledger):
    await talk(ledger)
    for owner in ("dpo-1", "DPO-1", " dpo-1 ", "dpo- 1"):
        await ledger.tokens.make(owner, ["erase"])
    request = await ledger.ask_to_erase(run=RUN, actor="dpo-1")
    for owner in ("DPO-1", " dpo-1 ", "dpo- 1"):
        with pytest.raises(SecondPersonNeeded):
            await ledger.confirm_erasure(request.request_id, actor=owner)
    await ledger.tokens.make("dpo-2", ["erase"])
    with pytest.raises(SecondPersonNeeded):
        await ledger.confirm_erasure(request.request_id, actor="Dpo-1")
    await ledger.confirm_erasure(request.request_id, actor="dpo-2")
    assert await question(ledger) is None


async def test_what_one_asked_for_and_another_confirmed_is_erased_and_names_both(two, database):
    request = await two.ask_to_erase(run=RUN, actor="dpo-1", reason="SUBJECT_REQUEST")
    assert await question(two) is not None
    report = await two.confirm_erasure(request.request_id, actor="dpo-2")
    assert report.content_count > 0
    assert await question(two) is None
    (decision,) = await decided(two)
    assert (decision["actor"], decision["request_id"]) == ("dpo-2", request.request_id)
    (known,) = await two.erasure_requests()
    assert (known.asked_by, known.confirmed_by, known.erasure_id) == ("dpo-1", "dpo-2", report.erasure_id)
    assert (await verify(database.url)).findings == ()


@pytest.mark.parametrize("actor", ["dpo-1", "reader-1", "stranger-1"])
async def test_neither_the_same_person_nor_one_without_the_right_confirms(two, actor):
    request = await two.ask_to_erase(run=RUN, actor="dpo-1")
    with pytest.raises(SecondPersonNeeded) as refused:
        await two.confirm_erasure(request.request_id, actor=actor)
    assert (refused.value.asked_by, refused.value.confirmed_by) == ("dpo-1", actor)
    assert await question(two) is not None


async def test_a_request_is_confirmed_once(two):
    request = await two.ask_to_erase(run=RUN, actor="dpo-1")
    await talk(two, "run-2")
    await two.confirm_erasure(request.request_id, actor="dpo-2")
    with pytest.raises(ErasureAlreadyConfirmed):
        await two.confirm_erasure(request.request_id, actor="dpo-2")
    with pytest.raises(ErasureRequestNotFound):
        await two.confirm_erasure("request-none", actor="dpo-2")


async def test_of_many_who_confirm_at_once_one_does(two, database):
    await two.tokens.make("dpo-3", ["erase"])
    request = await two.ask_to_erase(run=RUN, actor="dpo-1")
    async with await Ledger.open(database.url) as other:
        confirming = [
            ledger.confirm_erasure(request.request_id, actor=actor)
            for actor in ("dpo-2", "dpo-3")
            for ledger in (two, other)
        ]
        outcomes = await asyncio.gather(*confirming, return_exceptions=True)
    assert [outcome for outcome in outcomes if isinstance(outcome, BaseException)] == [
        outcome for outcome in outcomes if isinstance(outcome, ErasureAlreadyConfirmed)
    ]
    assert len(await decided(two)) == 1
    assert await question(two) is None


async def test_what_nobody_confirmed_in_time_has_to_be_asked_for_again(two, monkeypatch):
    request = await two.ask_to_erase(run=RUN, actor="dpo-1")
    assert request.expires_us == request.asked_us + REQUEST_TTL_S * 1_000_000
    monkeypatch.setattr(two._persons, "clock", type("Later", (), {"now_us": lambda _: request.expires_us})())
    with pytest.raises(ErasureRequestExpired) as refused:
        await two.confirm_erasure(request.request_id, actor="dpo-2")
    assert refused.value.expires_us == request.expires_us


async def test_one_person_is_enough_where_there_is_no_second(ledger):
    await talk(ledger)
    await ledger.tokens.make("dpo-1", ["erase"])
    await ledger.tokens.make("dpo-1", ["erase", "read"])
    other, _ = await ledger.tokens.make("dpo-2", ["erase"])
    await ledger.tokens.revoke(other.token_id)
    assert (await ledger.erase(run=RUN, actor="dpo-1")).content_count > 0


async def test_a_second_person_who_comes_in_between_is_needed(ledger, monkeypatch):
    await talk(ledger)
    await ledger.tokens.make("dpo-1", ["erase"])
    decide = ledger._eraser._store.decide

    async def later(order):
        monkeypatch.undo()
        await ledger.tokens.make("dpo-2", ["erase"])
        await decide(order)

    monkeypatch.setattr(ledger._eraser._store, "decide", later)
    with pytest.raises(SecondPersonNeeded):
        await ledger.erase(run=RUN, actor="dpo-1")
    assert await question(ledger) is not None


def test_the_command_asks_for_one_and_confirms_for_the_other(two_on_disk):
    def erase(*args):
        return CliRunner().invoke(main, ["erase", *args, "--db", two_on_disk])

    asked = erase("session-1/run-1", "--actor", "dpo-1", "--yes")
    request = re.search(r"--confirm (request-\S+) --actor NAME", asked.output)
    assert request is not None, asked.output
    assert asked.exit_code == 1
    refused = erase("--confirm", request[1], "--actor", "dpo-1")
    assert (refused.exit_code, "has to confirm it" in refused.output) == (1, True)
    assert erase("--confirm", request[1]).exit_code == 2
    confirmed = erase("--confirm", request[1], "--actor", "dpo-2")
    assert (confirmed.exit_code, "erased " in confirmed.output) == (0, True), confirmed.output
    assert erase("--confirm", request[1], "--actor", "dpo-2").exit_code == 1


async def test_old_contents_are_erased_by_two_as_well(two):
    request = await two.ask_to_erase(older_than_s=0, actor="dpo-2", reason="RETENTION")
    assert (await two.confirm_erasure(request.request_id, actor="dpo-1")).run_count == 1
