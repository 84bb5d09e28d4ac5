"""Whatever runs a log has and however they take turns: a bundle of any part of it is right, for both verifiers."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ledger.audit.bundle import independent
from ledger.audit.bundle.verifying import verify_bundle
from tests.audit.bundles import KEY, MemoryLog, write_period, write_run
from tests.examples import examples
from tests.ledger.scripted import ScriptedRun


@st.composite
def logs(draw):
    """A log of runs that take turns, and two sizes of it."""
    log = MemoryLog()
    runs = [iter(ScriptedRun(f"run-{n}", "session-1", writer_id=f"w{n}").whole()) for n in range(4)]
    for turn in draw(st.lists(st.integers(0, 3), min_size=1, max_size=40)):
        submission = next(runs[turn], None)
        if submission is not None:
            log.append(submission)
    size = draw(st.integers(1, len(log.events)))
    return log, draw(st.integers(0, size)), size


@examples(30)
@given(logs())
def test_every_run_and_every_period_of_any_log_is_right(made):
    log, earlier, size = made
    with tempfile.TemporaryDirectory() as folder:
        keys = Path(folder) / "keys"
        keys.write_text(f"{KEY.verifier}\n")
        paths = [write_period(Path(folder) / "period", log, earlier, size)]
        for stream_id in dict.fromkeys(stream_id for stream_id, _ in log.events):
            run_id = stream_id.removeprefix("r:")
            paths.append(write_run(Path(folder) / run_id, log, run_id, log.signed_tree(size, earlier)))
        for path in paths:
            found = verify_bundle(path, [KEY.verifier])
            assert (found.finding, found.is_key_trusted) == (None, True)
            assert independent.main(str(path), str(keys)) == 0
        covered = sum(verify_bundle(path).manifest.tree.covered_count for path in paths[1:])
        assert covered == size
