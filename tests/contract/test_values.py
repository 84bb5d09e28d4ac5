"""Whatever value passes a boundary is read back exactly, or refused before anything is written: CASES 26 and 27."""

import asyncio
import json
import math
import os

import pytest

from harness import Harness, InvalidInput, Limits
from harness.content import MAX_CONTENT_BYTES
from ledger import TooLarge
from tests.ledger.scripted import ScriptedRun

LIMITS = Limits(
    model_calls=8,
    tool_calls=40,
    per_tool_default=40,
    input_tokens=10_000,
    output_tokens=1_000,
    total_tokens=11_000,
    run_bytes=200_000_000,
)


def nested(levels):
    value = "deep"
    for _ in range(levels):
        value = {"k": [value]}
    return value


VALUES = {
    "a NUL": "before\u0000after",
    "a lone surrogate": "\udc00",
    "a surrogate inside": {"k\udc00": ["x\ud800y"]},
    "NaN": math.nan,
    "infinities": [math.inf, -math.inf],
    "minus zero": -0.0,
    "a small number": 1e-07,
    "more than 64 bits": [2**63, -(2**63) - 1, 2**200],
    "130 levels of nesting": nested(65),
    "an empty key": {"": "nothing", "x": {"": ""}},
    "keys that differ only in normalization": {"\u00e9": 1, "e\u0301": 2},
    "an emoji key": {"\U0001f680": "\U0001f469\u200d\U0001f52c"},
    "text that looks like another type": ["1", "null", "true", 1, None, True],
    "nothing": None,
    "an empty text": "",
    "a right-to-left override": "\u202eabc",
    "a long line": "ab" * 500_000,
}


def same(one, other):
    """Equal, and of equal types all through; NaN is NaN, and -0.0 is not 0.0."""
    return repr(one) == repr(other)


def read_back(view):
    if view.media_type == "application/json":
        return json.loads(view.data)
    return view.data.decode()


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
async def test_a_value_that_a_tool_is_given_and_gives_is_read_back_exactly(ledger, value):  # CASES 27
    harness = Harness(ledger.journal)
    async with harness.run(session_id="session-1", run_id="run-1", limits=LIMITS, timeout_s=30) as run:
        given = await harness.tool(run, "echo", lambda run, value: value, args={"value": value})
    assert same(given, value)
    (tool,) = (await ledger.reader.trace("session-1", "run-1")).tool_invocations
    assert same(read_back(tool.input), {"value": value})
    assert same(read_back(tool.output), value)
    assert tool.output.state == "stored"
    assert tool.output.size_bytes == len(tool.output.data)


@pytest.mark.parametrize("text", [value for value in VALUES.values() if isinstance(value, str)])
async def test_a_question_and_an_answer_are_read_back_exactly(ledger, text):  # CASES 27
    harness = Harness(ledger.journal)
    async with harness.run(session_id="session-1", run_id="run-1", query=text, limits=LIMITS, timeout_s=30) as run:
        harness.answer(run, text)
    trace = await ledger.reader.trace("session-1", "run-1")
    assert read_back(trace.answer) == text
    if trace.answer.media_type.startswith("text/"):
        assert trace.run.summary.query == text


@pytest.mark.parametrize("value", ["\u0000", "\udc00", "naïve", "\U0001f680", "", "x" * 257])
@pytest.mark.parametrize("field", ["labels", "actor", "environment"])
async def test_what_an_event_itself_cannot_hold_is_refused_before_anything_is_written(ledger, plain, field, value):
    harness = Harness(ledger.journal)
    with pytest.raises(InvalidInput, match=field):
        harness.run(
            session_id="session-1",
            limits=LIMITS,
            timeout_s=30,
            **{field: {"team": value} if field == "labels" else value},
        )
    assert plain().execute("SELECT count(*) FROM event").fetchone() == (0,)


@pytest.mark.parametrize("payload", [os.urandom(6_000_000), b"all the same " * 500_000], ids=["noise", "text"])
async def test_one_big_payload_among_others_is_stored_whole_and_so_are_its_neighbours(ledger, payload):  # CASES 26
    harness = Harness(ledger.journal)
    payloads = [b"before", payload, b"after"]
    async with harness.run(session_id="session-1", run_id="run-1", limits=LIMITS, timeout_s=30) as run:
        branches = [run.branch(f"b.{number}") for number in range(3)]
        await asyncio.gather(
            *(
                harness.tool(branch, "fetch", lambda run, number: payloads[number], args={"number": number})
                for number, branch in enumerate(branches)
            )
        )
    tools = (await ledger.reader.trace("session-1", "run-1")).tool_invocations
    assert {tool.scope: tool.output.data == payloads[int(tool.scope[2:])] for tool in tools} == {
        "b.0": True,
        "b.1": True,
        "b.2": True,
    }


async def test_a_payload_above_the_limit_is_kept_as_size_and_digest_and_never_cut(ledger):  # CASES 26, H9
    harness = Harness(ledger.journal)
    too_much = "x" * (MAX_CONTENT_BYTES + 1)
    async with harness.run(session_id="session-1", run_id="run-1", limits=LIMITS, timeout_s=30) as run:
        assert await harness.tool(run, "fetch", lambda run: too_much) == too_much
        await harness.tool(run, "fetch", lambda run: "small")
    big, small = (await ledger.reader.trace("session-1", "run-1")).tool_invocations
    assert (big.output.state, big.output.data, big.output.size_bytes) == ("digest_only", None, len(too_much))
    assert small.output.text == "small"


def test_a_payload_that_the_ledger_refuses_names_size_and_limit_and_leaves_its_neighbours_alone(ledger):  # CASES 26
    run, other = ScriptedRun(), ScriptedRun("run-2", writer_id="w2")
    futures = [ledger.journal.submit(run.start()), ledger.journal.submit(other.start())]
    attempt, neighbour = run.attempt(), other.attempt()
    futures += [ledger.journal.submit(attempt.start()), ledger.journal.submit(neighbour.start())]
    with pytest.raises(TooLarge, match=rf"{MAX_CONTENT_BYTES + 1} bytes.*{MAX_CONTENT_BYTES}"):
        ledger.journal.submit(attempt.succeed(bytes(MAX_CONTENT_BYTES + 1)))
    futures.append(ledger.journal.submit(neighbour.succeed("fine")))
    for future in futures:
        future.result()
