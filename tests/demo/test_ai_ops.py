"""The check of the whole machine, with the journal in memory (SPEC R7)."""

import json

import pytest

from demo.ai_ops import check_machine
from demo.text import paragraphs
from harness import RunEnded
from tests.demo.chats import of_type, transitions
from tests.demo.scripted_model import answering, calls, failing, failing_from


async def check(agent, question=None):
    messages = []

    async def emit(message):
        messages.append(message)

    await check_machine(agent, "s-1", question, emit, started=lambda run: None)
    return messages


async def test_a_check_tells_its_ids_first_and_its_report_in_order(chatting, journal):  # SPEC R7
    async with chatting() as agent:
        messages = await check(agent)
    first, *content, last = messages
    assert (first["type"], first["sessionId"], last["type"]) == ("metadata", "s-1", "done")
    assert {message["type"] for message in content} == {"content"}
    report = "".join(message["data"] for message in content)
    (recorded,) = of_type(journal, first["runId"], "answer.recorded")
    assert journal.contents[recorded.answer_digest].data.decode() == report
    assert of_type(journal, first["runId"], "run.started")[0].flow == "AI_OPS"


async def test_a_check_measures_searches_and_is_evaluated_by_rules(chatting, journal):  # SPEC R7
    async with chatting() as agent:
        run_id = (await check(agent))[0]["runId"]
    usage = journal.state(run_id).usage
    assert all(
        usage[f"tool:{tool}"] >= 1 for tool in ("host_metrics", "top_processes", "search_logs", "search_runbooks")
    )
    (ended,) = [
        event for event in of_type(journal, run_id, "attempt.succeeded") if "aiops_rule_evaluation" in event.boundary
    ]
    evaluation = json.loads(journal.contents[ended.output_digest].data)
    assert evaluation["verdict"] == "PASS", evaluation


@pytest.mark.parametrize("model", [failing_from("answer"), failing(0, 503)], ids=["reporter", "inspector"])
async def test_a_check_whose_model_goes_away_reports_what_the_tools_returned(chatting, journal, model):  # R11
    async with chatting(model) as agent:
        first, *content, last = await check(agent)
    report = "".join(message["data"] for message in content)
    assert report.startswith("Degraded answer. The model did not answer")
    assert "`/` is" in report
    assert last == {"type": "done", "data": {"degraded": True}}
    assert journal.state(first["runId"]).outcome == "SUCCESS"
    assert transitions(journal, first["runId"]) == [(None, "fallback", "FALLBACK")]
    (finished,) = of_type(journal, first["runId"], "graph.finished")
    assert (finished.final_node, finished.reason, finished.degraded) == ("fallback", "MODEL_FAILED", True)


def asking_in_vain(request):
    return 503 if any(message.role == "tool" for message in request.messages) else calls(("shell", {}))


@pytest.mark.parametrize("answer", [lambda request: 503, asking_in_vain], ids=["no tool called", "no tool worked"])
async def test_a_check_that_found_nothing_before_its_model_failed_fails_and_says_so(chatting, journal, answer):
    async with chatting(answering(answer)) as agent:
        with pytest.raises(RunEnded) as caught:
            await check(agent)
    assert (caught.value.outcome, caught.value.reason) == ("FAILED", "MODEL_FAILED")
    assert journal.state(caught.value.run_id).reason == "MODEL_FAILED"


@pytest.mark.parametrize("report", ["", "one", "a\n\nb", "a\n\n\n\nb\n\n", "\n\n"])
def test_the_pieces_of_a_report_are_the_report(report):
    assert "".join(paragraphs(report)) == report
