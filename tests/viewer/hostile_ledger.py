"""A real ledger of which every text that a stranger can have a hand in is an attack on whoever looks at it."""

import contextlib
from dataclasses import replace
from pathlib import Path

from harness import CancelReason, FailureType, ManualClock, OperationKind, RunEnded, ScopeLimits, TypedFailure
from harness.ids import RandomIds
from ledger import Ledger
from ledger.audit.signing.keyring import create_key, default_key_path
from ledger.audit.signing.signing import Signing
from tests.viewer.example_runs import HOSTILE, SCRIPT
from tests.viewer.real_runs import LIMITS, Agent, Reply

WORDS = " ".join(HOSTILE)
NAMED = '"><img src=x onerror="window.pwned=6">'
"""As much of an attack as fits into a name."""
ACTOR = "' onmouseover='window.pwned=7' x='"
SESSION = "x..-..-etc.passwd"
RUN, FAILED, ERASED, STOPPED = "javascript", "constructor", "0", "W" * 128
"""As much of one as fits into an id: letters, digits, dots, dashes, and no more than 128 of them."""


async def record_hostile(path: Path) -> None:
    """`RUN` was answered, judged and signed, `FAILED` raised, `ERASED` lost its words, `STOPPED` was asked to stop."""
    clock = ManualClock()
    async with await Ledger.open(path, wall_clock=clock) as ledger:
        await create_key(ledger, default_key_path(path), RandomIds(), origin="log.example/<b>x</b>", actor=ACTOR)
        agent = Agent(ledger, clock)
        await ledger.open_session(SESSION)
        await _answered(agent)
        await _failed(agent)
        await _erased(agent)
        await ledger.record_feedback(SESSION, RUN, useful=True, actor=ACTOR, comment=WORDS)
        await ledger.record_evaluation(
            SESSION, RUN, evaluator="constructor", verdict="PASS", usage={NAMED: 7}, rationale=WORDS
        )
        await ledger.erase(run=(SESSION, ERASED), actor=SCRIPT)
        await ledger.tokens.make(NAMED, ["read"], actor=ACTOR)
    async with await Ledger.open(path, signing=Signing(key=default_key_path(path)), wall_clock=clock) as ledger:
        await ledger.checkpoint()
        await _stopped(Agent(ledger, clock))


async def _answered(agent: Agent) -> None:
    labels = {"<u>": "</u>", "quote": ACTOR}
    own = {"agent": f"{SCRIPT}@<b>", "actor": ACTOR, "environment": NAMED, "labels": labels}
    async with agent.run(SESSION, RUN, WORDS, **own) as run:
        await agent.ask(run.branch("<b>router</b>"), NAMED, Reply(WORDS), fails=1, kind=OperationKind.INTENT_ROUTER)
        agent.harness.transition(run, None, NAMED)
        agent.harness.transition(run, NAMED, "'\"><svg onload=window.pwned=8>")
        with agent.harness.scope(run, ACTOR, limits=ScopeLimits(model_calls=2), timeout_s=30.0) as scope:
            await agent.ask(scope, "{{7*7}}", Reply(WORDS))
        for number, text in enumerate(HOSTILE):
            here = run.branch(f"<b>{number}</b>.1")
            await agent.use(here, NAMED, {text: text, "list": [{text: text}]}, text)
            await agent.use(here, "{{7*7}}", {"at": number}, [{text: text, "n": number}, {text: NAMED, "n": 1}])
        with contextlib.suppress(OSError):
            await agent.use(run, "raises", {"text": WORDS}, OSError(WORDS))
        await agent.use(run, "diff", {}, f"--- a/{NAMED}\n+++ b/x\n@@ -1 +1 @@\n-{SCRIPT}\n+{NAMED}\n")
        await agent.use(run, "big_line", {}, "x\u202e" * 1_250_000)
        agent.harness.answer(run, WORDS)


async def _failed(agent: Agent) -> None:
    with contextlib.suppress(TypedFailure):
        async with agent.run(SESSION, FAILED, SCRIPT, agent="{{7*7}}", continues_run_id=RUN) as run:
            await agent.guard(run, ACTOR)
            raise TypedFailure(FailureType.TRANSPORT, WORDS)


async def _erased(agent: Agent) -> None:
    limits = replace(LIMITS, per_tool={NAMED: 1})
    with contextlib.suppress(RunEnded):
        async with agent.run(SESSION, ERASED, WORDS, limits=limits, parent_run_id=RUN) as run:
            for _ in range(2):
                await agent.use(run, NAMED, {"text": WORDS}, WORDS)


async def _stopped(agent: Agent) -> None:
    with contextlib.suppress(RunEnded):
        async with agent.run(SESSION, STOPPED, WORDS) as run:
            run.cancellation.signal(CancelReason.USER_REQUESTED)
