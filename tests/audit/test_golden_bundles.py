"""Bundles of format 1 that were made once and for all, and what the documentation says of the format."""

import re
from pathlib import Path

import pytest

from ledger.audit.bundle import independent, limits
from ledger.audit.bundle import manifest as names
from ledger.audit.bundle.verifying import verify_bundle
from tests.audit.bundles import KEY, members_of, three_runs, write_period, write_run

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/golden"
README = (ROOT / "ledger/audit/README.md").read_text()


def make(folder):
    """As they were made; where the format changes they stay, and others are added."""
    log = three_runs()
    write_run(folder / "run-v1.bundle", log, tree=log.signed_tree(len(log.events), 9))
    write_period(folder / "period-v1.bundle", log, 10, len(log.events))


@pytest.mark.parametrize("name", ["run-v1.bundle", "period-v1.bundle"])
def test_a_bundle_of_format_1_is_still_read_and_made(name, tmp_path):
    (tmp_path / "keys").write_text(f"{KEY.verifier}\n")
    found = verify_bundle(GOLDEN / name, [KEY.verifier])
    assert (found.finding, found.is_key_trusted) == (None, True)
    assert independent.main(str(GOLDEN / name), str(tmp_path / "keys")) == 0
    make(tmp_path)
    made, golden = members_of(tmp_path / name), members_of(GOLDEN / name)
    for member in made.keys() - {names.ROWS, names.MANIFEST}:  # which another fold makes otherwise
        assert made[member] == golden[member]


def test_the_documentation_names_every_member_every_key_and_every_limit():
    for name in (*names.Member.model_fields["name"].annotation.__args__, names.MANIFEST):
        assert f"`{name}`" in README
    for model in (names.RunManifest, names.PeriodManifest, names.TreeClaim):
        for key in model.model_fields:
            assert f"`{key}`" in README
    for number in (limits.MAX_MEMBERS, limits.MAX_RUN_EVENTS, limits.MAX_PERIOD_EVENTS, limits.MAX_STREAMS):
        assert f"{number:,}" in README
    assert f"a member {limits.MAX_RATIO} times" in README


def test_the_tests_that_the_documentation_names_exist():
    named = re.findall(r"`((?:audit|contract|ledger|property)/test_\w+\.py)`", README)
    assert named
    assert [name for name in named if not (ROOT / "tests" / name).is_file()] == []
