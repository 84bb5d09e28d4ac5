"""What tests of bundles share: two of them that are right, and the key that signed them."""

import pytest

from tests.audit.bundles import KEY, LOG, SIZE, write_period, write_run


@pytest.fixture
def keys_file(tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"{KEY.verifier}\n")
    return path


@pytest.fixture
def run_bundle(tmp_path):
    return write_run(tmp_path / "run.bundle", LOG, tree=LOG.signed_tree(SIZE, earlier=9))


@pytest.fixture
def period_bundle(tmp_path):
    return write_period(tmp_path / "period.bundle", LOG, 10, SIZE)
