"""The example runs behind a real socket."""

from collections.abc import Iterator

import httpx2
import pytest

from tests.viewer.example_runs import all_runs
from tests.viewer.fake_reader import FakeReader
from tests.viewer.served import client_of


@pytest.fixture(scope="module")
def reader() -> FakeReader:
    return FakeReader(all_runs(), empty_sessions=["s-empty"])


@pytest.fixture(scope="module")
def client(reader) -> Iterator[httpx2.Client]:
    with client_of(reader) as client:
        yield client
