"""What a redacting function leaves of a content is all that is on record of it; one that fails leaves a digest."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from harness import Capture, CapturePolicy, Content, Harness, InvalidInput, Limits, MemoryJournal, RunEnded
from harness.content import CONTENT_DOMAIN
from harness.redaction import captured

LIMITS = Limits(
    model_calls=5,
    tool_calls=50,
    per_tool_default=50,
    input_tokens=1_000,
    output_tokens=1_000,
    total_tokens=1_000,
    run_bytes=1_000,
)
PIN = b"PIN 4711"


def mask(content: Content) -> Content:
    return replace(content, data=content.data.replace(b"4711", b"****"))


def everywhere(capture: Any) -> CapturePolicy:
    return CapturePolicy(**dict.fromkeys(CapturePolicy.__dataclass_fields__, capture))


async def talk(capture: Any, limits: Limits = LIMITS) -> MemoryJournal:
    """A run in which the PIN passes every boundary there is."""
    journal = MemoryJournal()
    harness = Harness(journal, capture=everywhere(capture))
    words = PIN.decode()

    async def say(run: Any, words: str) -> str:
        return words

    async def fail(run: Any) -> None:
        raise ValueError(words)

    async with harness.run(session_id="s", run_id="run-1", query=words, limits=limits, timeout_s=30) as run:
        for call in (harness.tool, harness.guard, harness.model):
            assert await call(run, "say", say, args={"words": words}) == words
        for call in (harness.tool, harness.guard):
            with pytest.raises(ValueError, match=words):
                await call(run, "fail", fail)
        harness.answer(run, words)
    with pytest.raises(ValueError, match=words):
        async with harness.run(session_id="s", run_id="run-2", limits=limits, timeout_s=30):
            raise ValueError(words)
    return journal


async def give(run: Any) -> str:
    return "a"


async def call_once(harness: Harness, limits: Limits) -> None:
    async with harness.run(session_id="s", run_id="run-1", limits=limits, timeout_s=30) as run:
        await harness.tool(run, "say", give)


def stored(journal: MemoryJournal) -> list[bytes]:
    return [content.data for content in journal.contents.values() if content.data is not None]


def said(journal: MemoryJournal, what: str) -> dict[str, Any]:
    """A field of each event that has it, by event type and role."""
    events = [*journal.events("run-1"), *journal.events("run-2")]
    return {
        f"{event.type} {name}": getattr(event, name)
        for event in events
        for name in type(event).model_fields
        if name.endswith(what) and getattr(event, name) is not None
    }


async def test_what_is_redacted_is_stored_in_its_redacted_form_alone():
    journal = await talk(mask)
    assert all(b"4711" not in data for data in stored(journal))
    assert any(b"PIN ****" in data for data in stored(journal))
    assert set(said(journal, "_redaction").values()) == {"APPLIED"}
    assert len(said(journal, "_redaction")) == 6
    assert set(said(journal, "_stored").values()) == {True}


async def test_digest_and_size_are_those_of_the_redacted_form_so_that_nobody_can_try_what_was_taken_out():
    journal = await talk(lambda content: "gone")
    assert set(said(journal, "_bytes").values()) == {4}
    for content in journal.contents.values():
        hashed = CONTENT_DOMAIN + content.salt + content.media_type.encode() + b"\0" + b"gone"
        assert hashlib.sha256(hashed).hexdigest() == content.digest


def broken(content: Content) -> Content:
    raise RuntimeError(content.data)


async def never(content: Content) -> Content:
    return content


FAILURES = {
    "it raises": broken,
    "it gives nothing": lambda content: None,
    "it gives a number": lambda content: 7,
    "it gives what it was given as something else": lambda content: bytearray(content.data),
    "it gives a generator": lambda content: (redacted for redacted in [content]),
    "it gives a content that is none": lambda content: Content(bytearray(content.data), content.media_type),  # type: ignore[arg-type]
    "it gives a media type that no event could name": lambda content: Content(content.data, "text/plain; ü"),
    "it gives an endless media type": lambda content: Content(content.data, "x" * 257),
    "it exits at once": lambda content: next(iter(())),
}


@pytest.mark.parametrize("redact", FAILURES.values(), ids=FAILURES)
async def test_a_function_that_fails_leaves_the_digest_and_never_the_original(redact: Any, caplog: Any):
    journal = await talk(redact)
    assert stored(journal) == []
    assert set(said(journal, "_redaction").values()) == {"FAILED"}
    assert set(said(journal, "_stored").values()) == {False}
    assert "could not be redacted" in caplog.text
    assert "4711" not in caplog.text


async def test_a_capture_that_is_no_redaction_says_nothing_of_one():
    for capture in (Capture.FULL, Capture.DIGEST_ONLY):
        assert said(await talk(capture), "_redaction") == {}


async def test_a_redacted_form_that_does_not_fit_is_kept_as_its_digest():  # H9
    limits = replace(LIMITS, run_bytes=10)
    journal = MemoryJournal()
    capture = CapturePolicy(tool_output=lambda content: "r" * 50)
    harness = Harness(journal, capture=capture)
    with pytest.raises(RunEnded):
        await call_once(harness, limits)
    (end,) = [event for event in journal.events("run-1") if event.type == "attempt.succeeded"]
    assert (end.output_bytes, end.output_stored, end.output_redaction) == (50, False, "APPLIED")
    assert stored(journal) == [b"{}"]


@pytest.mark.parametrize("capture", [None, "full", True, never])
def test_a_capture_that_is_none_is_refused_and_named(capture: Any):
    with pytest.raises(InvalidInput, match=r"capture\.tool_output"):
        CapturePolicy(tool_output=capture)


async def test_a_redacting_function_is_called_without_the_runs_lock():
    seen: list[bool] = []
    runs: list[Any] = []

    def take() -> bool:
        with runs[0].live.lock:
            return True

    def look(content: Content) -> Content:
        with ThreadPoolExecutor() as other_thread:
            seen.append(other_thread.submit(take).result(10))
        return content

    async def fail_on_purpose() -> None:
        async with harness.run(session_id="s", run_id="run-1", limits=LIMITS, timeout_s=30) as opened:
            runs.append(opened)
            await harness.tool(opened, "say", give)
            harness.answer(opened, "b")
            raise ValueError("on purpose")

    policy = CapturePolicy(tool_input=look, tool_output=look, error=look, answer=look)
    harness = Harness(MemoryJournal(), capture=policy)
    with pytest.raises(ValueError, match="on purpose"):
        await fail_on_purpose()
    assert seen == [True] * 4


def test_two_contents_that_are_redacted_to_the_same_are_the_same():
    first, second = (captured(Content(data, "text/plain"), lambda _: "gone") for data in (b"one", b"two"))
    assert first.content.fingerprint == second.content.fingerprint
