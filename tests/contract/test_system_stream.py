"""The ledger's own stream: what is decided about it, with the guarantees of every stream (SPEC D2)."""

import asyncio
import json

import pytest
from click.testing import CliRunner

from harness import events as e
from harness.errors import InvalidInput
from ledger import AppendConflict, EventIdReused, LedgerReader, SessionNotFound
from ledger.bytes import body_hash, genesis_link, next_link
from tests.contract.databases import Refused
from tests.ledger import commands as cli
from tests.ledger.scripted import ScriptedRun


def recomputed(connection, stream_id):
    """The links of a stream, from its bodies alone; the stream's row must name the last."""
    (ledger_id,) = connection.execute("SELECT value FROM ledger_meta WHERE key = 'ledger_id'").fetchone()
    link, links = genesis_link(ledger_id, stream_id), []
    rows = connection.execute(
        "SELECT seq, recorded_us, body, link FROM event WHERE stream_id = ? ORDER BY seq", (stream_id,)
    )
    for seq, recorded_us, body, stored in rows:
        link = next_link(link, seq, recorded_us, body_hash(body))
        assert (seq, stored) == (len(links) + 1, link)
        links.append(link)
    head = connection.execute("SELECT head_seq, head_link FROM stream WHERE stream_id = ?", (stream_id,)).fetchone()
    assert head == (len(links), links[-1])
    return links


async def test_what_is_decided_about_the_ledger_is_chained_in_a_stream_of_its_own(ledger, plain):  # D2, E9
    made = {"purpose": "CHECKPOINT", "algorithm": "ED25519"}
    places = [
        await ledger.record_system(e.KeyCreated, key_id="k1", **made),
        await ledger.record_system(e.KeyRotated, key_id="k2", replaced_key_id="k1", **made),
        await ledger.record_system(e.TokenCreated, token_id="t1", grants="READ", actor="ops-1"),
        await ledger.record_system(e.AccessRecorded, action="TRACE_READ", allowed=True, token_id="t1"),
    ]
    events = await ledger.reader.system_events()
    assert [event.type for event in events] == ["key.created", "key.rotated", "token.created", "access.recorded"]
    assert [event.link for event in events] == [place.head_link.hex() for place in places]
    assert [link.hex() for link in recomputed(plain(), "sys")] == [event.link for event in events]
    assert [event.seq for event in await ledger.reader.system_events(after_seq=2, limit=1)] == [3]


async def test_a_decision_said_twice_is_recorded_once(ledger):  # E5, D22
    said = {"token_id": "t1", "grants": "READ", "event_id": "w1:1"}
    first = await ledger.record_system(e.TokenCreated, **said)
    await ledger.record_system(e.TokenRevoked, token_id="t1", reason="LOST")
    assert await ledger.record_system(e.TokenCreated, **said) == first
    with pytest.raises(EventIdReused):
        await ledger.record_system(e.TokenCreated, **said | {"grants": "WRITE"})
    assert len(await ledger.reader.system_events()) == 2


async def test_of_twenty_that_decide_on_one_position_one_wins(ledger, database):  # E5, CASES 36
    await ledger.record_system(e.TokenCreated, token_id="t0", grants="READ")
    async with await database.open() as other:
        outcomes = await asyncio.gather(
            *(
                (ledger, other)[number % 2].record_system(
                    e.TokenCreated, token_id=f"t{number}", grants="READ", seq_expected=1
                )
                for number in range(1, 21)
            ),
            return_exceptions=True,
        )
    conflicts = [outcome for outcome in outcomes if isinstance(outcome, AppendConflict)]
    assert {(conflict.stream_id, conflict.seq_expected, conflict.seq_found) for conflict in conflicts} == {
        ("sys", 1, 2)
    }
    assert len(conflicts) == 19
    assert len(await ledger.reader.system_events()) == 2


async def test_two_processes_extend_one_chain(ledger, database, plain):
    async with await database.open() as other:
        for number in range(6):
            await (ledger, other)[number % 2].record_system(e.TokenCreated, token_id=f"t{number}", grants="READ")
    assert len(recomputed(plain(), "sys")) == 6


async def test_a_decision_with_fields_that_it_does_not_have_is_refused_and_nothing_is_recorded(ledger):  # D9
    for fields in ({"grants": "read this text"}, {"grants": "READ", "note": "x"}, {}):
        with pytest.raises(InvalidInput):
            await ledger.record_system(e.TokenCreated, token_id="t1", **fields)
    assert await ledger.reader.system_events() == []


async def test_a_decision_cannot_be_changed_by_a_plain_connection(ledger, plain):  # E2
    await ledger.record_system(e.KeyRevoked, key_id="k1", reason="COMPROMISED")
    for attack in (
        "UPDATE event SET version = 2 WHERE stream_id = 'sys'",
        "DELETE FROM event WHERE stream_id = 'sys'",
        "DELETE FROM stream WHERE stream_id = 'sys'",
        "UPDATE stream SET head_seq = 0 WHERE stream_id = 'sys'",
    ):
        with pytest.raises(Refused):
            plain().execute(attack)


async def test_decisions_are_no_part_of_any_run_and_a_rebuild_has_nothing_to_say_of_them(ledger):
    for submission in ScriptedRun().whole():
        ledger.journal.submit(submission).result()
    await ledger.record_system(e.AccessRecorded, action="TRACE_READ", allowed=False, of_run_id="run-1")
    assert (await ledger.rebuild()).is_clean
    types = {event.type for event in await ledger.reader.events("session-1", "run-1")}
    assert "access.recorded" not in types


async def test_that_a_sessions_context_was_cleared_is_said_in_its_stream(ledger, plain):  # D2
    await ledger.open_session("session-1")
    before = await ledger.reader.session("session-1")
    await ledger.clear_context("session-1", actor="u-17")
    assert await ledger.reader.session("session-1") == before
    assert (await ledger.rebuild()).is_clean
    rows = plain().execute("SELECT type FROM event WHERE stream_id = 's:session-1' ORDER BY seq").fetchall()
    assert rows == [("session.opened",), ("session.context_cleared",)]
    assert len(recomputed(plain(), "s:session-1")) == 2


async def test_no_context_is_cleared_of_a_session_that_is_not_there(ledger):
    with pytest.raises(SessionNotFound):
        await ledger.clear_context("session-1")


def test_decisions_are_listed_for_people_and_for_programs(database):
    async def decide():
        async with await database.open() as ledger:
            await ledger.record_system(e.TokenCreated, token_id="t1", grants="READ", expires_us=0)
            await ledger.record_system(e.TokenRevoked, token_id="t1", reason="LOST", actor="ops-1")

    def call(*args):
        return CliRunner().invoke(cli.system, ["--db", database.url, *args]).stdout

    assert call() == "nothing was decided\n"
    asyncio.run(decide())
    lines = call().splitlines()
    assert lines[0].split() == ["SEQ", "TIME", "EVENT", "FACTS"]
    assert lines[1].endswith("token.created  expires_us 1970-01-01T00:00:00.000000Z, grants READ, token_id t1")
    assert call("--limit", "1").splitlines()[-1] == "more: --after 1"
    (last,) = json.loads(call("--after", "1", "--json"))
    assert (last["type"], last["seq"], last["actor"]) == ("token.revoked", 2, "ops-1")


async def test_a_reader_alone_can_list_decisions(ledger, database):
    await ledger.record_system(e.TokenCreated, token_id="t1", grants="READ")
    async with await LedgerReader.open(database.url) as reader:
        assert [event.fields["token_id"] for event in await reader.system_events()] == ["t1"]
