"""Feedback, evaluations and cases: bound to one run, recorded as events (SPEC R6, D23)."""

import asyncio

import pytest

from harness.errors import InvalidInput
from ledger import RunNotFound, TooLarge
from ledger.annotations import MAX_EVALUATORS
from ledger.sizes import MAX_TEXT_BYTES
from tests.ledger.scripted import ScriptedRun
from tests.ledger.tables import dump


@pytest.fixture
async def recorded(ledger):
    for run_id, session_id in (("run-1", "session-1"), ("run-2", "session-2")):
        for submission in ScriptedRun(run_id, session_id).whole():
            ledger.journal.submit(submission).result()
    return ledger


async def trace(ledger):
    return await ledger.reader.trace("session-1", "run-1")


def cases(plain):
    columns = "case_id, diagnosis_id, session_id, verdict, withdrawn, query_digest, answer_digest"
    return plain().execute(f"SELECT {columns} FROM case_library").fetchall()


async def test_feedback_is_bound_to_its_run_and_read_with_its_comment(recorded):
    await recorded.record_feedback("session-1", "run-1", useful=True, actor="u-7", comment="spot on")
    feedback = (await trace(recorded)).feedback
    assert (feedback["useful"], feedback["actor"], feedback["comment"]) == (True, "u-7", "spot on")
    assert (await recorded.reader.trace("session-2", "run-2")).feedback is None


@pytest.mark.parametrize(
    ("session_id", "run_id"), [("session-1", "run-2"), ("session-1", "run-9"), ("session-9", "run-1")]
)
async def test_feedback_on_a_foreign_run_is_not_found_and_changes_neither(
    recorded, plain, session_id, run_id
):  # CASES 43
    before = dump(plain(), "event", "diagnosis_run", "case_library", "chat_session")
    with pytest.raises(RunNotFound):
        await recorded.record_feedback(session_id, run_id, useful=True)
    with pytest.raises(RunNotFound):
        await recorded.record_evaluation(session_id, run_id, evaluator="rules", verdict="OK")
    assert dump(plain(), "event", "diagnosis_run", "case_library", "chat_session") == before


async def test_useful_feedback_makes_one_case_of_the_runs_question_and_answer(recorded, plain):
    detail = await trace(recorded)
    case_id = await recorded.record_feedback("session-1", "run-1", useful=True, verdict="REJECTED")
    again = await recorded.record_feedback("session-1", "run-1", useful=True, verdict="ACCEPTED")
    ((known_id, diagnosis_id, session_id, verdict, withdrawn, query, answer),) = cases(plain)
    assert case_id == again == known_id
    assert (diagnosis_id, session_id, verdict, withdrawn) == ("run-1", "session-1", "REJECTED", 0)
    assert answer == detail.answer.digest
    assert query is not None


async def test_feedback_that_is_revised_counts_as_last_given_and_withdraws_the_case(recorded, plain):
    await recorded.record_feedback("session-1", "run-1", useful=True)
    assert await recorded.record_feedback("session-1", "run-1", useful=False) is not None
    assert (await trace(recorded)).feedback["useful"] is False
    assert [row[4] for row in cases(plain)] == [1]
    await recorded.record_feedback("session-1", "run-1", useful=True)
    assert [row[4] for row in cases(plain)] == [0]


async def test_feedback_that_was_never_useful_makes_no_case(recorded, plain):
    assert await recorded.record_feedback("session-1", "run-1", useful=False) is None
    assert cases(plain) == []


async def test_useful_feedback_from_many_at_once_makes_one_case(recorded, plain):
    ids = await asyncio.gather(
        *(recorded.record_feedback("session-1", "run-1", useful=True) for _ in range(20)),
    )
    assert len(set(ids)) == len(cases(plain)) == 1


async def test_feedback_on_a_running_run_is_taken_while_its_owner_goes_on(ledger, plain):
    run = ScriptedRun("run-3")
    submissions = list(run.whole())
    ledger.journal.submit(submissions[0]).result()
    await ledger.record_feedback("session-1", "run-3", useful=True)
    for submission in submissions[1:]:
        ledger.journal.submit(submission).result()
    assert (await ledger.reader.trace("session-1", "run-3")).run.summary.status == "SUCCESS"


async def test_each_evaluator_has_its_last_word(recorded):
    await recorded.record_evaluation("session-1", "run-1", evaluator="rules", verdict="WEAK")
    await recorded.record_evaluation("session-1", "run-1", evaluator="rules", verdict="OK", usage={"checked": 3})
    await recorded.record_evaluation("session-1", "run-1", evaluator="judge", verdict="GOOD", rationale="it cites logs")
    said = (await trace(recorded)).self_evaluation
    assert said["rules"] == {"verdict": "OK", "usage": {"checked": 3}}
    assert (said["judge"]["verdict"], said["judge"]["rationale"]) == ("GOOD", "it cites logs")


async def test_free_text_is_content_and_not_in_any_event(recorded):  # E10
    await recorded.record_feedback("session-1", "run-1", useful=True, comment="a secret comment")
    await recorded.record_evaluation("session-1", "run-1", evaluator="x", verdict="OK", rationale="a secret reason")
    events = await recorded.reader.events("session-1", "run-1")
    assert not [event for event in events if b"secret" in event.body]


@pytest.mark.parametrize(
    "bad",
    [{"verdict": "not a code"}, {"verdict": ""}, {"actor": "ünknown"}, {"useful": "yes"}, {"useful": 1}],
    ids=str,
)
async def test_what_is_no_feedback_is_refused(recorded, bad):
    with pytest.raises(InvalidInput):
        await recorded.record_feedback("session-1", "run-1", **({"useful": True} | bad))
    assert (await trace(recorded)).feedback is None


@pytest.mark.parametrize(
    "bad",
    [
        {"verdict": "a b"},
        {"evaluator": ""},
        {"usage": {"n": -1}},
        {"usage": {"n": 1.5}},
        {"usage": {"ü": 1}},
        {"usage": {str(number): 1 for number in range(65)}},
    ],
    ids=lambda bad: str(bad)[:24],
)
async def test_what_is_no_evaluation_is_refused(recorded, bad):
    with pytest.raises(InvalidInput):
        await recorded.record_evaluation("session-1", "run-1", **({"evaluator": "rules", "verdict": "OK"} | bad))
    assert (await trace(recorded)).self_evaluation is None


async def test_a_comment_that_is_too_long_is_refused_with_its_size_and_the_limit(recorded):
    with pytest.raises(TooLarge, match=f"{MAX_TEXT_BYTES + 1} bytes, and the limit is {MAX_TEXT_BYTES}"):
        await recorded.record_feedback("session-1", "run-1", useful=True, comment="x" * (MAX_TEXT_BYTES + 1))


async def test_a_run_has_a_bounded_number_of_evaluators(recorded):
    for number in range(MAX_EVALUATORS):
        await recorded.record_evaluation("session-1", "run-1", evaluator=f"e{number}", verdict="OK")
    with pytest.raises(InvalidInput):
        await recorded.record_evaluation("session-1", "run-1", evaluator="one_more", verdict="OK")
    await recorded.record_evaluation("session-1", "run-1", evaluator="e0", verdict="WEAK")


async def test_cases_to_learn_from_are_read_newest_first(recorded):
    ids = [
        await recorded.record_feedback(f"session-{number}", f"run-{number}", useful=True, verdict="APPROVED")
        for number in (1, 2)
    ]
    found = await recorded.reader.cases()
    assert {case.case_id for case in found} == set(ids)
    first = next(case for case in found if case.run_id == "run-1")
    detail = await trace(recorded)
    assert (first.session_id, first.query, first.verdict) == ("session-1", detail.run.summary.query, "APPROVED")
    assert first.answer == detail.answer.text
    assert len(await recorded.reader.cases(limit=1)) == 1


async def test_a_case_that_was_withdrawn_or_erased_is_not_offered(recorded):  # R6, E10
    for number in (1, 2):
        await recorded.record_feedback(f"session-{number}", f"run-{number}", useful=True)
    await recorded.record_feedback("session-1", "run-1", useful=False)
    assert [case.run_id for case in await recorded.reader.cases()] == ["run-2"]
    await recorded.erase(run=("session-2", "run-2"))
    assert await recorded.reader.cases() == []
