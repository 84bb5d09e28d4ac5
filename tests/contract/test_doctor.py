"""The doctor says what is, names what needs attention, and changes nothing."""

import pytest

from harness.clock import ManualClock
from ledger import Ledger
from ledger.doctor import UNSEQUENCED_WARN_S, examine, needs_attention
from ledger.store.postgres.sequencing import Sequencer
from tests.contract.test_following import ordered
from tests.contract.test_verifying import disarm
from tests.ledger.scripted import ScriptedRun

NOT_DURABLE = ("fsync", "full_page_writes")
"""Settings of a server for tests, which trusts the power."""


PLACE = "INSERT INTO follower (name, leaf_index) VALUES (?, ?)"


def advice_on(facts):
    return {fact.name: fact.advice for fact in facts if fact.advice is not None and fact.name not in NOT_DURABLE}


def values_of(facts):
    return {fact.name: fact.value for fact in facts}


@pytest.fixture(autouse=True)
def roomy_disk(monkeypatch):
    monkeypatch.setattr("ledger.store.examining.FREE_WARN_BYTES", 0)


async def test_a_healthy_ledger_needs_nothing(ledger, database):
    ledger.journal.submit(ScriptedRun().start()).result()
    await ordered(ledger, 2)
    facts = await examine(database.url, "option --db")
    assert advice_on(facts) == {}
    values = values_of(facts)
    assert (values["events"], values["streams"], values["contents"], values["standing"]) == (2, 2, 1, "live")
    assert [fact.value for fact in facts if fact.name.startswith("runs_open_of w")] == [1]
    assert {fact.origin for fact in facts if fact.name in ("db", "permits_max")} == {"option --db", "default"}


async def test_runs_of_the_dead_are_counted(database):  # E7
    ledger = await database.open()
    ledger.journal.submit(ScriptedRun().start()).result()
    await ledger.close()
    facts = await examine(database.url)
    assert values_of(facts)["runs_open_of_dead"] == 1
    assert "opens the ledger" in advice_on(facts)["runs_open_of_dead"]


async def test_rules_that_somebody_took_away_are_noticed(ledger, database, plain):  # E2
    disarm(plain(), "event")
    assert any("run `tachograph verify`" in advice for advice in advice_on(await examine(database.url)).values())


async def test_erasures_that_were_cut_short_are_noticed(ledger, database, plain):  # D19
    plain().execute(
        "INSERT INTO erasure (erasure_id, scope, reason, is_marked, run_count, content_count, size_bytes)"
        " VALUES ('erasure-1', 'SESSION', 'REQUESTED', 0, 0, 0, 0)"
    )
    facts = await examine(database.url)
    assert needs_attention(facts)
    assert advice_on(facts) == {"erasures_unfinished": "run `tachograph erase --finish`"}


async def test_followers_that_are_behind_are_named(ledger, database, plain, monkeypatch):  # E8
    for submission in ScriptedRun().whole():
        ledger.journal.submit(submission).result()
    last = values_of(await examine(database.url))["events"] - 1
    await ordered(ledger, last + 1)
    monkeypatch.setattr("ledger.doctor.FOLLOWER_WARN_EVENTS", 3)
    for name, place in (("level", last), ("near", last - 3), ("slow", last - 4), ("ahead", last + 1)):
        plain().execute(PLACE, (name, place))
    facts = await examine(database.url)
    lags = {name: value for name, value in values_of(facts).items() if name.startswith("follower")}
    assert lags == {
        "follower_lag_of ahead": -1,
        "follower_lag_of level": 0,
        "follower_lag_of near": 3,
        "follower_lag_of slow": 4,
    }
    advice = advice_on(facts)
    assert advice.keys() == {"follower_lag_of ahead", "follower_lag_of slow"}
    assert "went further" in advice["follower_lag_of ahead"]
    assert "see to it that it runs" in advice["follower_lag_of slow"]


async def test_events_that_get_no_place_need_attention(postgres_url, monkeypatch):  # E8
    async with await Ledger.open(postgres_url) as ledger:
        ledger.journal.submit(ScriptedRun().start()).result()
        await ordered(ledger, 2)
    assert values_of(await examine(postgres_url))["unsequenced_events"] == 0
    monkeypatch.setattr(Sequencer, "start", lambda self: None)
    async with await Ledger.open(postgres_url, wall_clock=ManualClock(wall_us=1_000_000_000_000_000)) as ledger:
        ledger.journal.submit(ScriptedRun("run-2", "session-2", writer_id="w2").start()).result()
    facts = await examine(postgres_url)
    assert values_of(facts)["unsequenced_events"] >= 2
    assert values_of(facts)["unsequenced_s"] > UNSEQUENCED_WARN_S
    assert "let a process open the ledger" in advice_on(facts)["unsequenced_s"]
    monkeypatch.undo()
    await (await Ledger.open(postgres_url)).close()
    assert values_of(await examine(postgres_url))["unsequenced_s"] == 0
