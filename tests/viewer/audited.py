"""A ledger that is signed, with a run of each kind that the audit pages tell apart."""

from pathlib import Path

from harness import ManualClock
from harness.ids import RandomIds
from ledger import Ledger
from ledger.audit.signing.keyring import create_key, default_key_path
from ledger.audit.signing.signing import Signing
from tests.viewer.example_runs import HOSTILE
from tests.viewer.real_runs import Agent, answered

ORIGIN = "log.example/audited"


async def record_audited(path: Path) -> None:
    """`r-answered` is signed, `r-erased` lost its words and is signed, too; `r-late` came after the last checkpoint."""
    clock = ManualClock()
    async with await Ledger.open(path, wall_clock=clock) as ledger:
        await create_key(ledger, default_key_path(path), RandomIds(), origin=ORIGIN, actor="ops-1")
        agent = Agent(ledger, clock)
        await ledger.open_session("s-1")
        await answered(agent)
        async with agent.run("s-1", "r-erased", "Whose is it?") as run:
            await agent.use(run, "query_metrics", {"what": "disk"}, {"secret": "whatever it was"})
            agent.harness.answer(run, " ".join(HOSTILE))
        async with agent.run("s-1", "r-hostile", " ".join(HOSTILE), agent="<script>x</script>@<b>") as run:
            for number, text in enumerate(HOSTILE):
                await agent.use(run.branch(f"<b>{number}</b>.1"), "<i>tool</i>", {text: text}, text)
            agent.harness.answer(run, " ".join(HOSTILE))
        await ledger.erase(run=("s-1", "r-erased"), actor="<b>privacy</b>")
    signing = Signing(key=default_key_path(path))
    async with await Ledger.open(path, signing=signing, wall_clock=clock) as ledger:
        await ledger.checkpoint()
    async with await Ledger.open(path, wall_clock=clock) as ledger:
        agent = Agent(ledger, clock)
        async with agent.run("s-1", "r-late", "And now?") as run:
            await agent.guard(run, "check")
