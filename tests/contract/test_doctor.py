"""The doctor says what is, names what needs attention, and changes nothing."""

import pytest

from ledger.doctor import examine, needs_attention
from tests.contract.test_verifying import disarm
from tests.ledger.scripted import ScriptedRun

NOT_DURABLE = ("fsync", "full_page_writes")
"""Settings of a server for tests, which trusts the power."""


def advice_on(facts):
    return {fact.name: fact.advice for fact in facts if fact.advice is not None and fact.name not in NOT_DURABLE}


def values_of(facts):
    return {fact.name: fact.value for fact in facts}


@pytest.fixture(autouse=True)
def roomy_disk(monkeypatch):
    monkeypatch.setattr("ledger.store.examining.FREE_WARN_BYTES", 0)


async def test_a_healthy_ledger_needs_nothing(ledger, database):
    ledger.journal.submit(ScriptedRun().start()).result()
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
