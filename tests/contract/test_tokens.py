"""Tokens and sign-ins, on every engine: what opens, what does not any more, and what is on record of it."""

import asyncio

import pytest

from harness.errors import InvalidInput
from harness.ids import RandomIds
from ledger import LedgerReader
from ledger.tokens.errors import TokenNotFound
from ledger.tokens.reading import TokenReading
from ledger.tokens.tokens import LOGIN_CODE_TTL_S, SESSION_TTL_S


async def decisions(ledger):
    return [(event.type, event.fields) for event in await ledger.reader.system_events()]


async def test_a_token_is_found_by_what_its_holder_presents_and_by_nothing_else(ledger):
    made, bearer = await ledger.tokens.make("ops-1", ["annotate", "read"], session_prefix="team-a")
    other, other_bearer = await ledger.tokens.make("ops-2", ["audit"])
    assert await ledger.tokens.by_bearer(bearer) == made
    assert (made.owner, made.rights, made.session_prefix) == ("ops-1", ("read", "annotate"), "team-a")
    secret = bearer.partition(".")[2]
    for wrong in ("", ".", secret, made.token_id, f"{other.token_id}.{secret}", f"{bearer}x", bearer[:-1], "\udc00.x"):
        assert await ledger.tokens.by_bearer(wrong) is None
    assert await ledger.tokens.by_bearer(other_bearer) == other


async def test_of_a_secret_nothing_is_stored_but_its_hash(ledger, plain):
    made, bearer = await ledger.tokens.make("ops-1", ["read"])
    code = await ledger.tokens.link(made.token_id)
    secret = bearer.partition(".")[2]
    rows = [plain().execute(f"SELECT * FROM {table}").fetchall() for table in ("token", "sign_in", "event")]
    assert made.secret_hash in rows[0][0]
    for hidden in (secret, code):
        assert hidden.encode() not in repr(rows).encode()
    assert secret not in repr(made)


async def test_a_token_opens_nothing_after_its_time(ledger, clock):
    made, bearer = await ledger.tokens.make("ops-1", ["read"], lifetime_s=60)
    clock.advance(59)
    assert await ledger.tokens.by_bearer(bearer) == made
    clock.advance(1)
    assert await ledger.tokens.by_bearer(bearer) is None
    assert made.state(clock.now_us()) == "expired"


async def test_a_revoked_token_opens_nothing_and_its_sessions_end_with_it(ledger):
    made, bearer = await ledger.tokens.make("ops-1", ["read"])
    session = await ledger.tokens.enter(await ledger.tokens.link(made.token_id))
    assert await ledger.tokens.by_session(session) == made
    assert await ledger.tokens.revoke(made.token_id, reason="LOST", actor="ops-2")
    assert not await ledger.tokens.revoke(made.token_id, reason="LOST")
    assert await ledger.tokens.by_bearer(bearer) is None
    assert await ledger.tokens.by_session(session) is None
    assert await ledger.tokens.are_any()


async def test_what_is_made_and_revoked_is_on_record_once_and_without_any_secret(ledger):  # D2
    made, _ = await ledger.tokens.make("ops-1", ["read", "cancel"], session_prefix="a", lifetime_s=1, actor="admin")
    await ledger.tokens.revoke(made.token_id, reason="LOST", actor="admin")
    await ledger.tokens.revoke(made.token_id)
    (created, said), (revoked, why) = await decisions(ledger)
    assert (created, revoked) == ("token.created", "token.revoked")
    assert {name: said[name] for name in ("token_id", "grants", "owner", "session_prefix", "expires_us", "actor")} == {
        "token_id": made.token_id,
        "grants": "read.cancel",
        "owner": "ops-1",
        "session_prefix": "a",
        "expires_us": made.expires_us,
        "actor": "admin",
    }
    assert (why["token_id"], why["reason"]) == (made.token_id, "LOST")
    assert (await ledger.rebuild()).is_clean


async def test_a_token_that_cannot_be_made_leaves_neither_a_row_nor_an_event(ledger):
    for owner, rights, settings in (
        ("", ["read"], {}),
        ("ops-1", [], {}),
        ("ops-1", ["write"], {}),
        ("ops-1", ["read"], {"session_prefix": "no/such"}),
        ("ops-1", ["read"], {"lifetime_s": 0}),
        ("ops-1", ["read"], {"actor": "\n"}),
    ):
        with pytest.raises(InvalidInput):
            await ledger.tokens.make(owner, rights, **settings)
    assert await ledger.tokens.all() == []
    assert await decisions(ledger) == []
    assert not await ledger.tokens.are_any()


async def test_a_link_is_good_once_in_a_race_of_two_processes(ledger, database, clock):
    made, _ = await ledger.tokens.make("ops-1", ["read"])
    code = await ledger.tokens.link(made.token_id)
    barrier = asyncio.Barrier(8)
    async with await database.open(wall_clock=clock, ids=RandomIds()) as other:

        async def enter(tokens):
            await barrier.wait()
            return await tokens.enter(code)

        sessions = await asyncio.gather(*(enter((ledger, other)[number % 2].tokens) for number in range(8)))
    (session,) = [one for one in sessions if one is not None]
    assert await ledger.tokens.by_session(session) == made
    assert await ledger.tokens.enter(code) is None
    assert await ledger.tokens.by_session(code) is None


async def test_links_and_sessions_are_over_after_their_time_and_are_tidied_away(ledger, clock, plain):
    made, _ = await ledger.tokens.make("ops-1", ["read"])
    late = await ledger.tokens.link(made.token_id)
    clock.advance(LOGIN_CODE_TTL_S)
    assert await ledger.tokens.enter(late) is None
    session = await ledger.tokens.enter(await ledger.tokens.link(made.token_id))
    clock.advance(SESSION_TTL_S)
    assert await ledger.tokens.by_session(session) is None
    await ledger.tokens.link(made.token_id)
    assert plain().execute("SELECT kind FROM sign_in").fetchall() == [("code",)]


async def test_whoever_leaves_is_signed_out(ledger):
    made, _ = await ledger.tokens.make("ops-1", ["read"])
    code, other = [await ledger.tokens.link(made.token_id) for _ in range(2)]
    session, others = await ledger.tokens.enter(code), await ledger.tokens.enter(other)
    await ledger.tokens.leave(session)
    await ledger.tokens.leave(session)
    assert await ledger.tokens.by_session(session) is None
    assert await ledger.tokens.by_session(others) == made


async def test_a_token_is_named_by_its_id_or_as_its_owners_only_one(ledger):
    first, _ = await ledger.tokens.make("ops-1", ["read"])
    assert await ledger.tokens.named(owner="ops-1") == first
    second, _ = await ledger.tokens.make("ops-1", ["audit"])
    with pytest.raises(InvalidInput, match="has 2 tokens"):
        await ledger.tokens.named(owner="ops-1")
    await ledger.tokens.revoke(first.token_id)
    assert await ledger.tokens.named(owner="ops-1") == second
    for wanted in ({"token_id": first.token_id}, {"owner": "nobody"}):
        with pytest.raises(TokenNotFound):
            await ledger.tokens.named(**wanted)
    with pytest.raises(TokenNotFound):
        await ledger.tokens.revoke("token-0")


async def test_a_reader_alone_knows_tokens_too_and_another_process_sees_them_at_once(ledger, database, clock):
    made, bearer = await ledger.tokens.make("ops-1", ["read"])
    async with await LedgerReader.open(database.url) as reader:
        tokens = TokenReading(reader, clock)
        assert await tokens.by_bearer(bearer) == made
        await ledger.tokens.revoke(made.token_id)
        assert await tokens.by_bearer(bearer) is None
