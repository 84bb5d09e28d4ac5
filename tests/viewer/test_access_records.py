"""Who has looked is on record before anything is shown: exactly, once in a while, and within a bound."""

import asyncio
from urllib.parse import parse_qsl

import pytest

from harness.clock import ManualClock
from ledger import LedgerUnreadable
from ledger.errors import RunNotFound, SessionNotFound
from tests.viewer.guarded import guarded
from viewer.access.guard import Guard
from viewer.access.records import ACCESS_COALESCED_S, REFUSALS_MAX, Access, AccessRecords
from viewer.access.rights import Right
from viewer.access.rule import Rule
from viewer.access.sessions import ONE_RUN, ONE_SESSION, TWO_RUNS

TRACE = "/api/diagnosis/s-1/trace"


@pytest.fixture
def viewer(tmp_path):
    with guarded(tmp_path / "runs.db") as viewer:
        yield viewer


class Recording:
    """Records in memory, and fails where it is told to."""

    def __init__(self):
        self.said = []
        self.fails = False
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def record_system(self, model, **fields):
        await self.may_go_on.wait()
        if self.fails:
            raise LedgerUnreadable("runs.db", "cannot be written")
        self.said.append(fields)


def test_every_access_to_content_says_who_what_and_of_which_run(viewer):
    token_id, bearer = viewer.token("read", owner="ops-7")
    client = viewer.client(bearer)
    client.get(TRACE, params={"runId": "run-1"})
    client.get("/api/chat/session/s-1/runs")
    client.get("/trace", params={"sessionId": "s-2", "runId": "run-2"})
    client.get("/api/chat/session/s-1")  # shows no content
    who = {"allowed": True, "token_id": token_id, "actor": "ops-7"}
    assert viewer.recorded() == [
        {**who, "action": "api.diagnosis.trace", "of_session_id": "s-1", "of_run_id": "run-1"},
        {**who, "action": "api.chat.session.runs", "of_session_id": "s-1"},
        {**who, "action": "trace", "of_session_id": "s-2", "of_run_id": "run-2"},
    ]


@pytest.mark.parametrize("sessions", [None, "s-1"])
def test_no_other_parameter_passes_for_what_was_seen(viewer, sessions):
    one_run = {"of_session_id": "s-1", "of_run_id": "run-1"}
    about = {
        "/trace?sessionId=s-1&runId=run-1": one_run,
        "/api/diagnosis/s-1/trace?runId=run-1": one_run,
        "/api/diagnosis/s-1/runs/run-1/steps?runId=run-9": one_run,
        "/sessions/s-1?runId=run-9": {"of_session_id": "s-1"},
        "/runs?sessionId=s-1&runId=run-9": {"of_session_id": "s-1"},
        "/sessions?sessionId=s-9&runId=run-9": {},
    }
    for address, keys in about.items():
        path, _, query = address.partition("?")
        for decoy in ("sessionA=s-9&runA=run-9", "sessionX=s-9", "sessionX=&runA=", "runA=run-9"):
            holder = viewer.holder(owner=f"{path} {decoy}", sessions=sessions)
            assert holder.get(f"{path}?{decoy}&{query}").status_code == 200
            allowed = [one for one in viewer.recorded() if one["allowed"] and one["actor"] == f"{path} {decoy}"]
            assert [{name: one[name] for name in one if name.startswith("of_")} for one in allowed] == [keys]


def test_of_two_runs_that_are_compared_both_are_on_record(viewer):
    query = {"sessionA": "s-1", "runA": "run-1", "sessionB": "s-2", "runB": "run-2"}
    for path in ("/compare", "/api/diagnosis/compare"):
        viewer.holder(owner="ops-1").get(path, params=query)
    told = [(one["action"], one["of_session_id"], one["of_run_id"]) for one in viewer.recorded()]
    assert told == [
        (action, f"s-{number}", f"run-{number}") for action in ("compare", "api.diagnosis.compare") for number in (1, 2)
    ]


def test_whoever_chooses_a_run_to_compare_with_has_seen_the_session(viewer):
    viewer.holder(owner="ops-1").get("/compare", params={"sessionA": "s-1", "runA": "run-1"})
    (told,) = viewer.recorded()
    assert (told["action"], told["of_session_id"], "of_run_id" in told) == ("compare", "s-1", False)


@pytest.mark.parametrize("sessions", [None, "s-1"])
def test_whoever_makes_up_ids_fills_no_ledger(viewer, sessions):
    client = viewer.holder("read", "audit", owner="ops-1", sessions=sessions)
    for number in range(7):
        assert client.get(TRACE, params={"runId": f"run-1-{number}"}).json()["code"] == "run_not_found"
        assert client.get(f"/api/chat/session/s-1-{number}/runs").json()["code"] == "session_not_found"
        assert client.get("/audit/bundle", params={"sessionId": "s-1", "runId": f"run-1-{number}"}).status_code == 404
        assert client.get("/api/diagnosis/runs", params={"sessionId": f"s-1-{number}"}).json()["data"] == []
    assert [(one["action"], one.get("reason"), one.get("of_session_id")) for one in viewer.recorded()] == [
        ("api.diagnosis.trace", "NOT_FOUND", "s-1"),
        ("api.chat.session.runs", "NOT_FOUND", "s-1-0"),
        ("audit.bundle", "NOT_FOUND", "s-1"),
        ("api.diagnosis.runs", None, None),
    ]
    assert client.get(TRACE, params={"runId": "run-1"}).status_code == 200
    assert viewer.recorded()[-1]["of_run_id"] == "run-1"


class NothingYet:
    """A ledger to which everything comes only just now."""

    async def session(self, session_id):
        raise SessionNotFound(session_id)

    async def status(self, session_id, run_id):
        raise RunNotFound(session_id, run_id)


@pytest.mark.parametrize("about", [ONE_RUN, ONE_SESSION, TWO_RUNS])
async def test_what_comes_to_be_there_while_somebody_asks_is_not_shown_without_a_record(about):
    guard = Guard(None, recording := Recording(), runs=NothingYet())
    query = b"sessionId=s-1&runId=run-1&sessionA=s-1&runA=run-1&sessionB=s-2&runB=run-2"
    scope = {"type": "http", "method": "GET", "path_params": {}, "query_string": query, "headers": []}
    await guard.admit(scope, None, Rule("trace", Right.READ, shows_content=True, within_sessions=True, about=about))
    asked = dict(parse_qsl(scope["query_string"].decode()))
    assert {asked[session] for session, _ in about} == {guard.sessions.nobodys}
    assert [one["reason"] for one in recording.said] == ["NOT_FOUND"]


def test_a_page_that_is_open_for_long_is_one_access_in_a_while(viewer):
    first, second = viewer.holder(owner="ops-1"), viewer.holder(owner="ops-2")
    for client in (first, first, second, first):
        assert client.get(TRACE, params={"runId": "run-1"}).status_code == 200
    assert [one["actor"] for one in viewer.recorded()] == ["ops-1", "ops-2"]


def test_refusals_are_on_record_with_their_reason(viewer):
    limited = viewer.holder("read", owner="ops-1", sessions="s-1")
    viewer.client().get(TRACE, params={"runId": "run-1"})
    limited.post("/api/feedback", json={"sessionId": "s-1", "runId": "run-1", "useful": True})
    limited.get("/api/diagnosis/overview")
    limited.get("/api/diagnosis/s-2/trace", params={"runId": "run-2"})
    told = [(one["action"], one["allowed"], one["reason"], one.get("actor")) for one in viewer.recorded()]
    assert told == [
        ("api.diagnosis.trace", False, "UNAUTHENTICATED", None),
        ("api.feedback", False, "FORBIDDEN", "ops-1"),
        ("api.diagnosis.overview", False, "FORBIDDEN", "ops-1"),
        ("api.diagnosis.trace", False, "FOREIGN_SESSION", "ops-1"),
    ]
    assert viewer.recorded()[-1]["of_session_id"] == "s-2"


def test_a_session_of_others_that_a_body_names_is_on_record(viewer):
    limited = viewer.holder(owner="ops-1", sessions="s-1")
    foreign = {"sessionId": "s-2", "runId": "run-2"}
    assert limited.post("/api/feedback", json=foreign | {"useful": True}).status_code == 404
    assert limited.post("/api/erasures", json=foreign | {"scope": "RUN"}).status_code == 404
    told = [(one["action"], one["reason"], one["of_session_id"]) for one in viewer.recorded()]
    assert told == [("api.feedback", "FOREIGN_SESSION", "s-2"), ("api.erasures", "FOREIGN_SESSION", "s-2")]


def test_where_nobody_needs_a_token_it_is_on_record_that_somebody_looked(viewer):
    viewer.client().get(TRACE, params={"runId": "run-1"})
    assert viewer.recorded() == [
        {"action": "api.diagnosis.trace", "allowed": True, "of_session_id": "s-1", "of_run_id": "run-1"}
    ]


async def test_nothing_is_shown_before_it_is_durable_that_somebody_looks():
    records = AccessRecords(recording := Recording(), ManualClock())
    recording.may_go_on.clear()
    first = asyncio.ensure_future(records.note(Access("trace", actor="ops-1")))
    second = asyncio.ensure_future(records.note(Access("trace", actor="ops-1")))
    await asyncio.sleep(0)
    assert not first.done()
    assert not second.done()
    first.cancel()
    recording.may_go_on.set()
    await second
    assert len(recording.said) == 1


async def test_what_could_not_be_recorded_is_not_shown_and_is_tried_again():
    records = AccessRecords(recording := Recording(), ManualClock())
    recording.fails = True
    for _ in range(2):
        with pytest.raises(LedgerUnreadable):
            await records.note(Access("trace"))
    recording.fails = False
    await records.note(Access("trace"))
    assert len(recording.said) == 1


async def test_an_access_is_recorded_again_after_a_while():
    clock = ManualClock()
    records = AccessRecords(recording := Recording(), clock)
    for seconds in (0, ACCESS_COALESCED_S - 1, 1, 0):
        clock.advance(seconds)
        await records.note(Access("trace"))
    assert len(recording.said) == 2


async def test_a_flood_of_refusals_fills_no_ledger(caplog):
    clock = ManualClock()
    records = AccessRecords(recording := Recording(), clock)
    for number in range(3 * REFUSALS_MAX):
        await records.note_refusal(Access("trace", token_id=f"t{number}", reason="FORBIDDEN"), f"s-{number}")
        await records.note_refusal(Access("trace", reason="UNAUTHENTICATED"))
    assert len(recording.said) == REFUSALS_MAX
    assert "is not recorded" in caplog.text
    clock.advance(ACCESS_COALESCED_S)
    await records.note_refusal(Access("trace", reason="UNAUTHENTICATED"))
    assert len(recording.said) == REFUSALS_MAX + 1


async def test_a_refusal_stands_where_it_cannot_be_recorded():
    records = AccessRecords(recording := Recording(), ManualClock())
    recording.fails = True
    await records.note_refusal(Access("trace", reason="FORBIDDEN"))
