"""Erasing over the network: one asks, another confirms where two could, and it goes on behind the answer (E10, D19)."""

import asyncio
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import ManualClock
from ledger import Ledger
from ledger.erasing.erasing import ErasureReport
from tests.viewer.example_runs import budget_run
from tests.viewer.fake_reader import FakeReader
from tests.viewer.guarded import guarded
from tests.viewer.served import client_of
from tests.viewer.test_openapi import as_described
from tests.viewer.test_pages import read
from viewer.audit.history import Entry, Known, SystemHistory
from viewer.erasing.carrying_out import Erasures, ErasureUnderWay
from viewer.erasing.known import What, erasures_known

ERASURES = "/api/erasures"
CONFIRM = "/api/erasures/{requestId}/confirm"
ONE, TWO = {"sessionId": "s-1", "runId": "run-1"}, {"sessionId": "s-2", "runId": "run-2"}
PAGE = "/trace?sessionId=s-1&runId=run-1"
FORM = "/trace/erase?sessionId=s-1&runId=run-1"
CONFIRMED = {"confirm": "yes"}
WANTED = {**CONFIRMED, "reason": "SECRET"}


@pytest.fixture
def viewer(tmp_path):
    with guarded(tmp_path / "runs.db") as viewer:
        yield viewer


@pytest.fixture
def two(viewer):
    """Two persons who may erase."""
    return viewer.holder(owner="dpo-1"), viewer.holder(owner="dpo-2")


def ask(client, scope="RUN", **body):
    return client.post(ERASURES, json={"scope": scope, **body})


def confirm(client, request_id):
    return client.post(CONFIRM.format(requestId=request_id))


def states(client):
    return [each["state"] for each in client.get(ERASURES).json()["data"]]


def answer_of(client, session_id="s-1", run_id="run-1"):
    return client.get(f"/api/diagnosis/{session_id}/trace", params={"runId": run_id}).json()["data"]["run"]["query"]


def document(client):
    return client.get("/api/openapi.json").json()


def test_where_one_person_suffices_asking_erases_at_once_and_says_so(viewer):  # E10
    client = viewer.holder(owner="dpo-1")
    assert answer_of(client) is not None
    answer = ask(client, **ONE, reason="SUBJECT_REQUEST")
    said = answer.json()["data"]
    assert (answer.status_code, said["state"], said["requestId"]) == (202, "done", None)
    assert (said["decidedBy"], said["reason"], said["contentCount"] > 0) == ("dpo-1", "SUBJECT_REQUEST", True)
    assert answer_of(client) is None
    assert answer_of(client, "s-2", "run-2") is not None
    assert as_described(document(client), "POST", ERASURES, answer) == ""
    assert client.get(ERASURES).json()["data"] == [said]


def test_what_is_erased_is_not_erased_again(viewer):
    client = viewer.holder(owner="dpo-1")
    first = ask(client, **ONE).json()["data"]
    assert ask(client, **ONE).json()["data"] == first
    again = ask(client, "SESSION", sessionId="s-1").json()["data"]
    assert (again["state"], again["erasureId"], again["contentCount"]) == ("done", None, 0)
    assert len(client.get(ERASURES).json()["data"]) == 1


def test_one_content_of_a_run_is_erased_by_its_digest(viewer):
    client = viewer.holder(owner="dpo-1")
    trace = client.get("/api/diagnosis/s-1/trace", params={"runId": "run-1"}).json()["data"]
    digest = trace["run"]["answerContent"]["digest"]
    assert ask(client, "DIGEST", **ONE, digest="0" * 64).json()["code"] == "content_not_found"
    said = ask(client, "DIGEST", **ONE, digest=digest).json()["data"]
    assert (said["state"], said["digest"], said["contentCount"]) == ("done", digest, 1)
    assert answer_of(client) is not None


def test_what_one_of_two_asks_for_is_erased_once_the_other_confirms_it(viewer, two):  # D2
    asker, other = two
    asked = ask(asker, **ONE).json()["data"]
    assert (asked["state"], asked["askedBy"], asked["erasureId"]) == ("asked", "dpo-1", None)
    assert answer_of(asker) is not None
    refused = confirm(asker, asked["requestId"])
    assert (refused.status_code, refused.json()["code"]) == (403, "second_person_needed")
    assert as_described(document(asker), "POST", CONFIRM, refused) == ""
    done = confirm(other, asked["requestId"])
    assert as_described(document(asker), "POST", CONFIRM, done) == ""
    said = done.json()["data"]
    assert (done.status_code, said["state"], said["askedBy"], said["decidedBy"]) == (202, "done", "dpo-1", "dpo-2")
    assert answer_of(asker) is None
    again = confirm(other, asked["requestId"])
    assert (again.status_code, again.json()["code"]) == (409, "erasure_already_confirmed")
    assert as_described(document(asker), "POST", CONFIRM, again) == ""
    assert states(asker) == ["done"]


def test_whoever_asks_again_asks_for_the_same(viewer, two):
    first, again = (ask(two[0], **ONE).json()["data"] for _ in range(2))
    assert again == first
    assert two[0].post(FORM, data={**CONFIRMED, "reason": "REQUESTED"}).status_code == 303
    assert states(two[0]) == ["asked"]
    for client, body in ((two[1], ONE), (two[0], ONE | {"reason": "SECRET"}), (two[0], TWO)):
        assert ask(client, **body).json()["data"]["requestId"] != first["requestId"]
    assert states(two[0]) == ["asked"] * 4


def test_of_two_who_confirm_at_once_one_does(viewer, two):  # E10, D2
    third = viewer.holder(owner="dpo-3")
    asked = ask(two[0], **ONE).json()["data"]["requestId"]
    barrier = threading.Barrier(2)

    def confirm_with(client):
        barrier.wait(30)
        return confirm(client, asked)

    with ThreadPoolExecutor(2) as pool:
        answers = sorted(pool.map(confirm_with, (two[1], third)), key=lambda answer: answer.status_code)
    assert [answer.status_code for answer in answers] == [202, 409]
    assert answers[1].json()["code"] in ("erasure_under_way", "erasure_already_confirmed")
    (done,) = two[0].get(ERASURES).json()["data"]
    assert (done["state"], done["decidedBy"] in ("dpo-2", "dpo-3")) == ("done", True)


@pytest.mark.parametrize("owner", ["dpo-1", "DPO-1", "dpo -1"])
def test_nobody_is_his_own_second_person_with_another_token(viewer, two, owner):  # D2
    asked = ask(two[0], **ONE).json()["data"]["requestId"]
    refused = confirm(viewer.holder(owner=owner), asked)
    assert (refused.status_code, refused.json()["code"]) == (403, "second_person_needed")
    assert answer_of(two[0]) is not None


def test_what_nobody_asked_for_cannot_be_confirmed(viewer, two):
    answer = confirm(two[0], "request-none")
    assert (answer.status_code, answer.json()["code"]) == (404, "erasure_request_not_found")
    assert as_described(document(two[0]), "POST", CONFIRM, answer) == ""


def test_who_is_limited_to_some_sessions_erases_and_confirms_within_them_alone(viewer):  # R4
    asker, limited = viewer.holder(owner="dpo-1"), viewer.holder(owner="dpo-2", sessions="s-1")
    own, foreign = (ask(asker, **each).json()["data"]["requestId"] for each in (ONE, TWO))
    assert [each["requestId"] for each in limited.get(ERASURES).json()["data"]] == [own]
    assert confirm(limited, foreign).json() == confirm(limited, "request-none").json()
    assert answer_of(asker, "s-2", "run-2") is not None
    assert confirm(limited, own).json()["data"]["state"] == "done"
    unknown = ask(limited, sessionId="s-none", runId="run-2")
    assert (unknown.status_code, ask(limited, **TWO).content) == (404, unknown.content)
    assert ask(limited, "SESSION", sessionId="s-2").json()["code"] == "session_not_found"


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"sessionId": "s-1"}, "scope"),
        ({"scope": "RUN", "sessionId": "s-1"}, "runId"),
        ({"scope": "SESSION", **ONE}, "runId"),
        ({"scope": "DIGEST", **ONE}, "digest"),
        ({"scope": "DIGEST", **ONE, "digest": "x"}, "digest"),
        ({"scope": "RUN", **ONE, "digest": "0" * 64}, "digest"),
        ({"scope": "RETENTION", "sessionId": "s-1"}, "scope"),
        ({"scope": "RUN", **ONE, "reason": "because of it"}, "reason"),
        ({"scope": "RUN", **ONE, "actor": "dpo-2"}, "actor"),
    ],
)
def test_what_does_not_say_exactly_what_to_erase_erases_nothing(viewer, body, named):
    client = viewer.holder(owner="dpo-1")
    answer = client.post(ERASURES, json=body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")
    assert answer.json()["message"].startswith(named)
    assert states(client) == []


def test_a_request_that_nobody_confirmed_in_time_is_told_as_such():
    asked = {"request_id": "request-1", "scope": "SESSION", "reason": "SECRET", "of_session_id": "s-1"}
    known = {kind: Known() for kind in ("erasures", "retention")}
    known["erasures"].add(Entry(1, 0, "erasure.requested", "dpo-1", {**asked, "expires_us": 10}))
    assert [erasures_known(known, now_us)[0].state for now_us in (9, 10)] == ["asked", "expired"]


def test_a_request_that_expired_is_refused_with_its_code(viewer, two):
    async def ask_long_ago():
        async with await Ledger.open(viewer.file, wall_clock=ManualClock(wall_us=1_700_000_000_000_000)) as ledger:
            return await ledger.ask_to_erase(run=("s-1", "run-1"), actor="dpo-1")

    request = asyncio.run(ask_long_ago())
    answer = confirm(two[1], request.request_id)
    assert (answer.status_code, answer.json()["code"]) == (409, "erasure_request_expired")
    assert states(two[1]) == ["expired"]


class SlowEraser:
    """Decides at once, and is at it until it is let go."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.begun = 0

    async def erase(self, *, on_progress, **about):
        self.begun += 1
        on_progress(0)
        await self.may_end.wait()
        return ErasureReport("erasure-1")


async def test_what_takes_long_goes_on_behind_the_answer_and_is_one_at_a_time():  # D19
    slow, what = SlowEraser(), What("SESSION", "SECRET", "s-1")
    erasures = Erasures(slow, SystemHistory(FakeReader()), ManualClock(), answered_within_s=0.0)
    await erasures.ask(what, "dpo-1")
    with pytest.raises(ErasureUnderWay):
        await erasures.ask(what, "dpo-1")
    assert slow.begun == 1
    slow.may_end.set()
    while asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.sleep(0)
    await erasures.ask(what, "dpo-1")
    assert slow.begun == 2


def test_a_server_that_only_reads_erases_nothing_and_shows_no_form():
    with client_of(FakeReader()) as client:
        answer = ask(client, **ONE)
        assert (answer.status_code, answer.json()["code"]) == (403, "read_only")
        assert client.post(FORM, data=WANTED).status_code == 403
    with client_of(FakeReader([budget_run()])) as client:
        assert "Erase this run's contents" not in read(client, "/trace?sessionId=s-42&runId=run-019ad3c1").text


def test_an_address_with_two_methods_names_both_to_who_asks_for_another():
    with client_of(FakeReader()) as client:
        answer = client.options(ERASURES)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")


def test_a_form_erases_a_runs_contents_and_its_page_says_by_whom(viewer):  # E10
    client = viewer.holder(owner="dpo-1")
    assert "Erase this run's contents" in read(client, PAGE).text
    assert client.post(FORM, data={"reason": "SECRET"}).status_code == 400
    answer = client.post(FORM, data=WANTED)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{PAGE}#erasing")
    text = read(client, PAGE).text
    assert re.search(r"[Ee]rased.* by dpo-1", text)


def test_only_those_with_the_right_see_the_forms_and_not_the_one_who_asked(viewer, two):  # D2
    asker, other = two
    auditor = viewer.holder("read", "audit", owner="auditor-1")
    assert "Erase this run's contents" not in read(auditor, PAGE).text
    asker.post(FORM, data=WANTED)
    assert "Erasing was asked for" in read(other, PAGE).text
    assert "Erase this run's contents" not in read(other, PAGE).text
    form = r"/audit/erasures/request-[^\"]+"
    pages = {name: client.get("/audit").text for name, client in (("asker", asker), ("auditor", auditor))}
    assert all("Waiting for a second person" in text and not re.search(form, text) for text in pages.values())
    assert "You asked for it" in pages["asker"]
    found = re.search(form, other.get("/audit").text)
    assert found is not None
    assert asker.post(found[0], data=CONFIRMED).status_code == 403
    assert auditor.post(found[0], data=CONFIRMED).status_code == 403
    assert other.post(found[0], data={"confirm": "no"}).status_code == 400
    assert answer_of(other) is not None
    done = other.post(found[0], data=CONFIRMED)
    assert (done.status_code, done.headers["location"]) == (303, "/audit?list=erasures#decided")
    assert answer_of(other) is None
    text = read(other, "/audit?list=erasures").text
    assert "Waiting for a second person" not in text
    assert "asked to erase run" in text


@pytest.mark.parametrize("path", [FORM, "/audit/erasures/request-1"])
def test_a_form_on_a_page_of_another_origin_erases_nothing(viewer, path):
    client = viewer.holder(owner="dpo-1")
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert client.post(path, data=WANTED, headers=headers).status_code == 403
    assert states(client) == []
